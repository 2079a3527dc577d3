// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// JSON values as the server handles them: a counted reference to a jansson value.
// Unlike lib/base/json.h this one also edits (delete, replace, deep copy), since
// patches and defaulting rewrite objects. Everything in kubesim is one thread.
#ifndef KUBESIM_JV_H
#define KUBESIM_JV_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <jansson.h>

namespace kubesim {

class J {
public:
	J() = default; // absent
	J(const J &o) : p_(json_incref(o.p_)) {}
	J(J &&o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
	J &operator=(J o) noexcept
	{
		std::swap(p_, o.p_);
		return *this;
	}
	~J() { json_decref(p_); }

	static J steal(json_t *p)
	{
		J j;
		j.p_ = p;
		return j;
	}
	static J share(json_t *p) { return steal(json_incref(p)); }
	static J object() { return steal(json_object()); }
	static J array() { return steal(json_array()); }
	static J null() { return steal(json_null()); }
	static J of(std::string_view s); // bytes that are not UTF-8 become '?'
	static J of(const char *s) { return of(std::string_view(s)); }
	static J of(const std::string &s) { return of(std::string_view(s)); }
	static J of(bool b) { return steal(json_boolean(b)); }
	static J of(int n) { return steal(json_integer(n)); }
	static J of(std::int64_t n) { return steal(json_integer(n)); }
	static J of(J j) { return j; }
	// Members in the order given: J::make("a", 1, "b", "x").
	template <class... A>
	static J make(A &&...a)
	{
		J j = object();
		j.put_all(std::forward<A>(a)...);
		return j;
	}
	static J list(const std::vector<std::string> &strings);

	// Absent on error, which is then said in *error ("line 1: ...").
	static J parse(std::string_view text, std::string *error = nullptr);
	std::string dump() const; // compact, keys in insertion order

	explicit operator bool() const { return p_ != nullptr; } // present, maybe null
	json_t *get() const { return p_; }
	bool is_object() const { return json_is_object(p_); }
	bool is_array() const { return json_is_array(p_); }
	bool is_string() const { return json_is_string(p_); }
	bool is_number() const { return json_is_number(p_); }
	bool is_integer() const { return json_is_integer(p_); }
	bool is_boolean() const { return json_is_boolean(p_); }
	bool is_null() const { return json_is_null(p_); }
	bool operator==(const J &o) const;

	// Reads: absent or the default for whatever is missing or of another type.
	J operator[](const char *key) const { return share(json_object_get(p_, key)); }
	J operator[](const std::string &key) const { return (*this)[key.c_str()]; }
	J path(std::string_view dotted) const; // "spec.nodeName"
	J item(std::size_t i) const { return share(json_array_get(p_, i)); }
	std::size_t size() const { return is_array() ? json_array_size(p_) : json_object_size(p_); }
	std::string str(std::string_view otherwise = {}) const;
	std::int64_t num(std::int64_t otherwise = 0) const;
	bool truth(bool otherwise = false) const;
	// Strings of an array; other items are skipped.
	std::vector<std::string> strings() const;

	// Writes change the shared value. An absent value is written as null.
	template <class T>
	J &set(const char *key, T &&value)
	{
		J v = of(std::forward<T>(value));
		json_object_set_new_nocheck(p_, key, v.p_ ? json_incref(v.p_) : json_null());
		return *this;
	}
	template <class T>
	J &set(const std::string &key, T &&value)
	{
		return set(key.c_str(), std::forward<T>(value));
	}
	template <class T>
	J &set_default(const char *key, T &&value) // only if absent or null
	{
		json_t *old = json_object_get(p_, key);
		return old && !json_is_null(old) ? *this : set(key, std::forward<T>(value));
	}
	void del(const std::string &key) { json_object_del(p_, key.c_str()); }
	// The member as an object, made (or replaced) if it is none.
	J child(const char *key);
	J children(const char *key); // the same for an array
	template <class T>
	void append(T &&value)
	{
		J v = of(std::forward<T>(value));
		json_array_append_new(p_, v.p_ ? json_incref(v.p_) : json_null());
	}
	J copy() const { return steal(json_deep_copy(p_)); }

	template <class F>
	void each_member(F &&f) const // f may not add or remove members
	{
		const char *key;
		json_t *value;
		json_object_foreach(p_, key, value) f(std::string(key), share(value));
	}
	template <class F>
	void each_item(F &&f) const
	{
		for (std::size_t i = 0; i < json_array_size(p_); i++)
			f(item(i));
	}

private:
	void put_all() {}
	template <class V, class... A>
	void put_all(const char *key, V &&value, A &&...rest)
	{
		set(key, std::forward<V>(value));
		put_all(std::forward<A>(rest)...);
	}
	json_t *p_ = nullptr;
};

} // namespace kubesim

#endif
