// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A device plugin for tests: its devices are nothing but a number. A container that gets some has an environment variable
// TEST_DEVICE_<number>=1 for each. It asks the kubelet for the last ones first, as Slurm takes the first ones first: what the two
// choose by themselves is not the same.
//
// SIGHUP: the file --unhealthy is read anew, numbers with blanks between them.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	first     int // its number
	count     int
	unhealthy string
	changed   chan os.Signal
	ctx       context.Context
}

const prefix = "gpu" // gpu3 is 3

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

func (p *plugin) devices() *api.ListAndWatchResponse {
	text, _ := os.ReadFile(p.unhealthy) // none is as good as an empty one
	bad := strings.Fields(string(text))
	var out api.ListAndWatchResponse
	for i := p.first; i < p.first+p.count; i++ {
		health := api.Healthy
		if slices.Contains(bad, fmt.Sprint(i)) {
			health = api.Unhealthy
		}
		out.Devices = append(out.Devices, &api.Device{ID: fmt.Sprintf("%s%d", prefix, i), Health: health})
	}
	return &out
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for {
		if err := stream.Send(p.devices()); err != nil {
			return err
		}
		select {
		case <-p.changed:
		case <-stream.Context().Done():
			return nil
		case <-p.ctx.Done():
			return nil
		}
	}
}

func (p *plugin) GetPreferredAllocation(_ context.Context, r *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	var out api.PreferredAllocationResponse
	for _, c := range r.ContainerRequests {
		ids := slices.Clone(c.MustIncludeDeviceIDs)
		last := slices.Sorted(slices.Values(c.AvailableDeviceIDs))
		slices.Reverse(last)
		for _, id := range last {
			if len(ids) < int(c.AllocationSize) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		out.ContainerResponses = append(out.ContainerResponses, &api.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return &out, nil
}

func (p *plugin) Allocate(_ context.Context, r *api.AllocateRequest) (*api.AllocateResponse, error) {
	var out api.AllocateResponse
	for _, c := range r.ContainerRequests {
		env := map[string]string{}
		var nodes []*api.DeviceSpec
		for _, id := range c.DevicesIds {
			number := strings.TrimPrefix(id, prefix)
			env["TEST_DEVICE_"+number] = "1"
			nodes = append(nodes, &api.DeviceSpec{ContainerPath: "/dev/test" + number, HostPath: "/dev/null", Permissions: "rw"})
		}
		out.ContainerResponses = append(out.ContainerResponses, &api.ContainerAllocateResponse{Envs: env, Devices: nodes})
	}
	return &out, nil
}

func register(folder, socket, resource string) error {
	kubelet, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	_, err = api.NewRegistrationClient(kubelet).Register(context.Background(), &api.RegisterRequest{Version: api.Version, Endpoint: socket,
		ResourceName: resource, Options: &api.DevicePluginOptions{GetPreferredAllocationAvailable: true}}, grpc.WaitForReady(true))
	return err
}

func run() error {
	p := plugin{changed: make(chan os.Signal, 1)}
	flag.IntVar(&p.count, "devices", 4, "how many it has")
	flag.StringVar(&p.unhealthy, "unhealthy", "", "file that says which of them are not well")
	flag.IntVar(&p.first, "first", 0, "number of the first one")
	resource := flag.String("resource", "nvidia.com/gpu", "what they are")
	folder := flag.String("folder", "/var/lib/kubelet/device-plugins", "where the kubelet has its socket")
	flag.Parse()

	var stop context.CancelFunc
	p.ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Notify(p.changed, syscall.SIGHUP)
	socket := filepath.Join(*folder, strings.ReplaceAll(*resource, "/", "_")+".sock")
	os.Remove(socket) // of one that was killed
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, &p)
	go server.Serve(listener)
	defer server.Stop()
	if err := register(*folder, filepath.Base(socket), *resource); err != nil {
		return err
	}
	<-p.ctx.Done()
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "test-device-plugin:", err)
		os.Exit(1)
	}
}
