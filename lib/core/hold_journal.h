// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The saved ledger: an append-only file of holds, one JSON object per line, so that
// a slurmctld that was killed at any moment knows what pods may still hold.
//
//   {"v":1}                                                        first line
//   {"v":1,"partial":true}                                         ... of one that was begun without
//                    a former one, until Kubernetes has told of every pod: see Ledger::partial
//                    ... ,"first":true}                          there may have been none, see Ledger::first
//   {"hold":"k8s:c/ns/name/uid","node":"n1","cores":[0,1],"more":0,"mb":100}
//                    ... ,"lost_node":true}                      its object has no node any more, see Hold
//                    ... ,"gres":[{"name":"gpu","type":"","count":2,"devices":[0,1]}]}
//                    ... ,"cpus":4}                              it requests so many hardware threads
//                    ... ,"foreign_mcpu":250,"grace":30}         a foreign pod
//                    ... ,"overhead":true}                       a foreign pod that belongs to the node
//   {"free":"k8s:c/ns/name/uid"}
//   {"gone":"k8s:c/ns/name/uid","by":"root (uid 0)"}               free by a person's word, see Released
//                    ... ,"foreign":true}                        of a foreign pod
//   {"resubmit":"k8s:c/ns/name/uid","step":"wanted","accrued":1700000000,"priority":0}
//                    ... ,"step":"kept", ... ,"manifest":"{...}"}  see Resubmit
//   {"resubmitted":"k8s:c/ns/name/uid"}                            that is done, or is not to be
//
// A last line cut short by a crash is ignored: it was not acknowledged. The file is
// written again when more than half of it is history. Owner only (0600); a file
// that is not ours or that others can write is refused.
//
// Only the thread of its owner; does disk I/O.
#ifndef SK8_CORE_HOLD_JOURNAL_H
#define SK8_CORE_HOLD_JOURNAL_H

#include <string>
#include <unordered_map>

#include "lib/base/result.h"
#include "lib/core/hold_table.h"

namespace sk8::core {

class HoldJournal {
public:
	virtual ~HoldJournal() = default;
	virtual void hold(const Hold &h) = 0;
	virtual void free(const PodKey &key) = 0; // also forgets a release
	virtual void released(const Released &r) = 0;
	virtual void resubmit(const Resubmit &r) = 0;
	virtual void forget_resubmit(const PodKey &key) = 0;
	// All there is has been told of: from now on it is not partial any more.
	virtual void complete() = 0;
	// What was appended is on disk when this returns ok. Before that nothing may be bound.
	virtual Result<void> flush() = 0;
};

// What a journal's text is; where it goes is flush()'s.
class JournalText : public HoldJournal {
public:
	// known: what parse_journal() gave, or the table has by now.
	explicit JournalText(const Ledger &known);
	void hold(const Hold &h) override;
	void free(const PodKey &key) override;
	void released(const Released &r) override;
	void resubmit(const Resubmit &r) override;
	void forget_resubmit(const PodKey &key) override;
	void complete() override;

protected:
	std::string whole() const; // written anew, without history
	bool begins_anew() const { return header_ != written_header_; } // whole() is to be written
	void written_anew() { written_header_ = header_; }
	std::size_t live() const { return live_.size(); } // its lines, but for the first
	std::string pending_;      // lines to append

private:
	void append(std::string what, std::string line);
	std::unordered_map<std::string, std::string> live_; // mark, or "resubmit " and mark -> line
	std::string header_, written_header_;
};

// Parses a saved ledger. Lines that make no sense are an error (with the line
// number), except a last one without newline.
Result<Ledger> parse_journal(std::string_view text);
std::string journal_line(const Hold &h);
std::string journal_line(const Released &r);
std::string journal_line(const PodKey &freed);
std::string journal_line(const Resubmit &r);
std::string journal_line_resubmitted(const PodKey &key);

} // namespace sk8::core

#endif
