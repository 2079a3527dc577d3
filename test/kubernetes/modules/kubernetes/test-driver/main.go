// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A DRA driver for tests: it has devices that are nothing but a number. A container that gets one has an environment variable
// TEST_DEVICE_<number>=<uid of the claim> (where its runtime knows CDI), and a line of the record says so: "prepared NUMBER CLAIM",
// "unprepared NUMBER CLAIM". It refuses to prepare a device that another claim has.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/utils/ptr"
)

type driver struct {
	name, node, record, cdi string
	mutex                   sync.Mutex
	has                     map[types.UID][]string // devices by claim
}

func (d *driver) note(format string, args ...any) error {
	file, err := os.OpenFile(d.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintf(file, format+"\n", args...)
	return err
}

// number: gpu-3 is 3.
func number(device string) string {
	return device[strings.LastIndex(device, "-")+1:]
}

func (d *driver) holder(device string, but types.UID) types.UID {
	for uid, devices := range d.has {
		for _, other := range devices {
			if other == device && uid != but {
				return uid
			}
		}
	}
	return ""
}

func (d *driver) specFile(claim types.UID) string {
	return filepath.Join(d.cdi, d.name+"-"+string(claim)+".json")
}

// One CDI device for each, and claim: https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
func (d *driver) writeSpec(claim types.UID, devices []string) error {
	type edits struct {
		Env []string `json:"env"`
	}
	type device struct {
		Name           string `json:"name"`
		ContainerEdits edits  `json:"containerEdits"`
	}
	spec := struct {
		Version string   `json:"cdiVersion"`
		Kind    string   `json:"kind"`
		Devices []device `json:"devices"`
	}{Version: "0.5.0", Kind: d.name + "/device"}
	for _, name := range devices {
		env := fmt.Sprintf("TEST_DEVICE_%s=%s", number(name), claim)
		spec.Devices = append(spec.Devices, device{string(claim) + "-" + name, edits{[]string{env}}})
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(d.specFile(claim), text, 0o644)
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) kubeletplugin.PrepareResult {
	var out kubeletplugin.PrepareResult
	var devices []string
	if claim.Status.Allocation == nil {
		out.Err = fmt.Errorf("claim %s/%s is not allocated", claim.Namespace, claim.Name)
		return out
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.name {
			continue
		}
		if other := d.holder(result.Device, claim.UID); other != "" {
			out.Err = fmt.Errorf("device %s is claim %s's", result.Device, other)
			d.note("refused %s %s", number(result.Device), claim.Name)
			return out
		}
		devices = append(devices, result.Device)
		out.Devices = append(out.Devices, kubeletplugin.Device{Requests: []string{result.Request}, PoolName: result.Pool,
			DeviceName: result.Device, CDIDeviceIDs: []string{d.name + "/device=" + string(claim.UID) + "-" + result.Device}})
	}
	if d.has[claim.UID] != nil {
		return out // a kubelet may ask again
	}
	if out.Err = d.writeSpec(claim.UID, devices); out.Err != nil {
		return out
	}
	d.has[claim.UID] = devices
	for _, device := range devices {
		d.note("prepared %s %s", number(device), claim.Name)
	}
	return out
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	out := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		out[claim.UID] = d.prepare(claim)
	}
	return out, nil
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	out := map[types.UID]error{}
	for _, claim := range claims {
		for _, device := range d.has[claim.UID] {
			d.note("unprepared %s %s", number(device), claim.Name)
		}
		delete(d.has, claim.UID)
		os.Remove(d.specFile(claim.UID))
		out[claim.UID] = nil
	}
	return out, nil
}

func (d *driver) HandleError(_ context.Context, err error, message string) {
	fmt.Fprintln(os.Stderr, message+":", err)
}

func (d *driver) resources(count int, model string) resourceslice.DriverResources {
	var devices []resourceapi.Device
	for i := range count {
		devices = append(devices, resourceapi.Device{
			Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"index": {IntValue: ptr.To(int64(i))},
				"model": {StringValue: &model},
				"uuid":  {StringValue: ptr.To(fmt.Sprintf("GPU-%s-%d", d.node, i))},
			},
		})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: {Slices: []resourceslice.Slice{{Devices: devices}}}}}
}

func run() error {
	d := driver{has: map[types.UID][]string{}}
	flag.StringVar(&d.name, "driver", "gpu.example.com", "name of the driver")
	flag.StringVar(&d.node, "node", "", "of whose kubelet it is")
	flag.StringVar(&d.record, "record", "", "file that says what was prepared")
	flag.StringVar(&d.cdi, "cdi", "", "folder of CDI specs")
	kubeconfig := flag.String("kubeconfig", "", "as which it asks the API server")
	count := flag.Int("devices", 4, "how many it has")
	model := flag.String("model", "a100", "their attribute model")
	kubelet := flag.String("kubelet", "/var/lib/kubelet", "the kubelet's folder")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	data := filepath.Join(*kubelet, "plugins", d.name)
	for _, folder := range []string{data, d.cdi} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	helper, err := kubeletplugin.Start(ctx, &d, kubeletplugin.DriverName(d.name), kubeletplugin.NodeName(d.node), kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(*kubelet, "plugins_registry")), kubeletplugin.PluginDataDirectoryPath(data))
	if err != nil {
		return err
	}
	if err := helper.PublishResources(ctx, d.resources(*count, *model)); err != nil {
		return err
	}
	<-ctx.Done()
	helper.Stop()
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "test-driver:", err)
		os.Exit(1)
	}
}
