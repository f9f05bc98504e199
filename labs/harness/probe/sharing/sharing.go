// Package sharing finds out by reflection what an object's copies share with their original. It is
// compiled into the learner's module, so it uses nothing but the standard library.
package sharing

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Report is what is known about the copies of one type. Paths are Go names, such as
// Items[].Status.Conditions, but for those of Filled.
type Report struct {
	// Filled are the slices, maps and pointers that a copy could have shared, by their JSON names.
	Filled []string `json:"filled"`
	// Copies are the ways of copying that were tried.
	Copies []Copy `json:"copies"`
}

// Copy is one way of copying.
type Copy struct {
	// Method is DeepCopy, DeepCopyInto or DeepCopyObject.
	Method string `json:"method"`
	// Shared are the slices, maps and pointers that are the original's own.
	Shared []string `json:"shared,omitempty"`
	// Lost are the fields in which the copy differs from its original.
	Lost []string `json:"lost,omitempty"`
	// Spoilt are the fields of the original that copying changed.
	Spoilt []string `json:"spoilt,omitempty"`
	// Panic is the message and the stack of a panic.
	Panic string `json:"panic,omitempty"`
	// Missing says why the method could not be called.
	Missing string `json:"missing,omitempty"`
}

// methods are the three ways of copying that every kind has.
var methods = []string{"DeepCopy", "DeepCopyInto", "DeepCopyObject"}

// Inspect tries all ways of copying objects of the type that pointer points to: one whose every slice,
// map and pointer is filled, and an empty one.
func Inspect(pointer any) Report {
	t := reflect.TypeOf(pointer).Elem()
	report := Report{}
	for _, method := range methods {
		report.Copies = append(report.Copies, inspect(t, method))
	}
	collect(filled(t, 0).Elem(), "", &report.Filled)
	return report
}

func inspect(t reflect.Type, method string) (c Copy) {
	c.Method = method
	defer func() {
		if p := recover(); p != nil {
			c.Panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	for _, original := range []reflect.Value{filled(t, 0), reflect.New(t)} {
		before := filled(t, 0)
		if original.Elem().IsZero() {
			before = reflect.New(t)
		}
		copied, missing := call(original, method)
		if missing != "" {
			c.Missing = missing
			return c
		}
		var ignored []string
		compare(original.Elem(), copied.Elem(), "", &c.Shared, &c.Lost)
		compare(before.Elem(), original.Elem(), "", &ignored, &c.Spoilt)
	}
	return c
}

// call copies original. DeepCopyInto gets a target with content, which has to go.
func call(original reflect.Value, method string) (copied reflect.Value, missing string) {
	t := original.Type()
	m := original.MethodByName(method)
	if !m.IsValid() {
		return copied, fmt.Sprintf("%v has no method %s", t, method)
	}
	if method == "DeepCopyInto" {
		if m.Type().NumIn() != 1 || m.Type().In(0) != t {
			return copied, fmt.Sprintf("%s of %v does not take a %v", method, t, t)
		}
		target := filled(t.Elem(), 1)
		m.Call([]reflect.Value{target})
		return target, ""
	}
	if m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
		return copied, fmt.Sprintf("%s of %v is not a func() with one result", method, t)
	}
	copied = m.Call(nil)[0]
	if copied.Kind() == reflect.Interface {
		copied = copied.Elem()
	}
	if !copied.IsValid() || copied.Type() != t || copied.IsNil() {
		return copied, fmt.Sprintf("%s of %v does not return a %v", method, t, t)
	}
	return copied, ""
}

// compare walks through two values side by side.
func compare(a, b reflect.Value, path string, shared, lost *[]string) {
	switch a.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		compareReferences(a, b, path, shared, lost)
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[time.Time]() {
			if a.CanInterface() && !a.Interface().(time.Time).Equal(b.Interface().(time.Time)) {
				note(lost, path)
			}
			return // all times of one zone share the zone
		}
		for i := range a.NumField() {
			compare(a.Field(i), b.Field(i), field(path, a.Type().Field(i)), shared, lost)
		}
	case reflect.Array:
		for i := range a.Len() {
			compare(a.Index(i), b.Index(i), path+"[]", shared, lost)
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
	default:
		if !a.Equal(b) {
			note(lost, path)
		}
	}
}

func compareReferences(a, b reflect.Value, path string, shared, lost *[]string) {
	if a.Kind() == reflect.Interface && !a.IsNil() && !b.IsNil() {
		if a.Elem().Type() != b.Elem().Type() {
			note(lost, path)
			return
		}
		compare(a.Elem(), b.Elem(), path, shared, lost)
		return
	}
	if length(a) == 0 && length(b) == 0 {
		return
	}
	if length(a) != length(b) {
		note(lost, path)
		return
	}
	if a.Pointer() == b.Pointer() {
		note(shared, path)
		return // what is behind it is shared as well
	}
	switch a.Kind() {
	case reflect.Pointer:
		compare(a.Elem(), b.Elem(), path, shared, lost)
	case reflect.Slice:
		for i := range a.Len() {
			compare(a.Index(i), b.Index(i), path+"[]", shared, lost)
		}
	case reflect.Map:
		for _, key := range a.MapKeys() {
			if value := b.MapIndex(key); value.IsValid() {
				compare(a.MapIndex(key), value, path+"[]", shared, lost)
			} else {
				note(lost, path)
			}
		}
	}
}

// length is the number of things behind a reference. To a copy, an empty slice and no slice are one.
func length(v reflect.Value) int {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len()
	}
	if v.IsNil() {
		return 0
	}
	return 1
}

func field(path string, f reflect.StructField) string {
	switch {
	case f.Anonymous:
		return path // promoted: nobody writes the name of an embedded struct
	case path == "":
		return f.Name
	}
	return path + "." + f.Name
}

// jsonField is [field] by the names that JSON has for them.
func jsonField(path string, f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
		return strings.TrimPrefix(path+"."+name, ".")
	}
	return field(path, f)
}

func note(paths *[]string, path string) {
	if path = strings.TrimPrefix(path, "."); !slices.Contains(*paths, path) {
		*paths = append(*paths, path)
	}
}

// collect lists the references in v that lead somewhere.
func collect(v reflect.Value, path string, paths *[]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			note(paths, path)
			collect(v.Elem(), path, paths)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			note(paths, path)
			collect(v.Index(0), path+"[]", paths)
		}
	case reflect.Map:
		for i, key := range v.MapKeys() {
			if i == 0 {
				note(paths, path)
				collect(v.MapIndex(key), path+"[]", paths)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			collect(v.Field(i), jsonField(path, v.Type().Field(i)), paths)
		}
	}
}

// filled makes a value of type t in which no field is empty. The same variant gives equal values, and
// another one gives other values.
func filled(t reflect.Type, variant int) reflect.Value {
	p := reflect.New(t)
	f := filler{next: variant * 1000}
	f.fill(p.Elem())
	return p
}

// filler counts, so that no two fields hold the same, and remembers the types it is inside of, so that
// types which contain themselves come to an end.
type filler struct {
	next   int
	inside []reflect.Type
}

func (f *filler) fill(v reflect.Value) {
	if !v.CanSet() || slices.Contains(f.inside, v.Type()) {
		return
	}
	f.next++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.next < 1000)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.next % 120)) // fits the smallest
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(f.next % 120))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(f.next))
	case reflect.Complex64, reflect.Complex128:
		v.SetComplex(complex(float64(f.next), 0))
	case reflect.String:
		v.SetString(fmt.Sprintf("value-%d", f.next))
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		f.fill(p.Elem())
		v.Set(p)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 { // may have to be JSON, as in managedFields
			v.SetBytes(fmt.Appendf(nil, `{"f:%d":{}}`, f.next))
			return
		}
		s := reflect.MakeSlice(v.Type(), 2+f.next/1000, 2+f.next/1000)
		f.fillElements(s)
		v.Set(s)
	case reflect.Array:
		f.fillElements(v)
	case reflect.Map:
		f.fillMap(v)
	case reflect.Struct:
		f.fillStruct(v)
	}
}

func (f *filler) fillElements(v reflect.Value) {
	for i := range v.Len() {
		f.fill(v.Index(i))
	}
}

func (f *filler) fillMap(v reflect.Value) {
	m := reflect.MakeMap(v.Type())
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	f.fill(key)
	f.fill(value)
	m.SetMapIndex(key, value)
	v.Set(m)
}

func (f *filler) fillStruct(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 1, 1, 0, 0, f.next, 0, time.UTC)))
		return
	}
	if f.decode(v) {
		return
	}
	f.inside = append(f.inside, v.Type())
	for i := range v.NumField() {
		f.fill(v.Field(i))
	}
	f.inside = f.inside[:len(f.inside)-1]
}

// decode fills a type that hides its fields and can read itself from JSON, such as a quantity.
func (f *filler) decode(v reflect.Value) bool {
	hidden := false
	for i := range v.NumField() {
		hidden = hidden || !v.Type().Field(i).IsExported()
	}
	if _, ok := v.Addr().Interface().(json.Unmarshaler); !ok || !hidden {
		return false
	}
	return json.Unmarshal(fmt.Appendf(nil, "%q", fmt.Sprint(f.next)), v.Addr().Interface()) == nil
}
