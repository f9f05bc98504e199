// Package types holds the checks of lab 1: what the API server makes of the learner's types.
package types

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"

	"github.com/example/operator-lab/labs/harness"
)

var _ = harness.Lab(1, func() {
	harness.Check("sizes-accepted", func(ctx SpecContext) {
		memcacheds := open(ctx)
		for size := range int64(5) {
			harness.Require(memcacheds.keeps(ctx, sizeField, size+1))
		}
	})

	harness.Check("sizes-refused", func(ctx SpecContext) {
		memcacheds := open(ctx)
		random := harness.Rand()
		harness.Require(memcacheds.keeps(ctx, sizeField, 1+random.Int64N(5)))
		harness.Require(memcacheds.refuses(ctx, sizeField, tooSmall, 0, -1, -2-random.Int64N(1000)))
		harness.Require(memcacheds.refuses(ctx, sizeField, tooBig, 6, 7+random.Int64N(1000)))
		harness.Require(memcacheds.refuses(ctx, sizeField, notANumber, "three"))
	})

	harness.Check("ports-bounded", func(ctx SpecContext) {
		memcacheds := open(ctx)
		random := harness.Rand()
		for _, port := range []int64{1, 2 + random.Int64N(65533), 65535} {
			harness.Require(memcacheds.keeps(ctx, portField, port))
		}
		harness.Require(memcacheds.refuses(ctx, portField, tooSmall, 0, -1-random.Int64N(1000)))
		harness.Require(memcacheds.refuses(ctx, portField, tooBig, 65536, 65537+random.Int64N(100000)))
		harness.Require(memcacheds.refuses(ctx, portField, notANumber, "memcache"))
	})

	harness.Check("unknown-fields-refused", func(ctx SpecContext) {
		memcacheds := open(ctx)
		unknown := harness.Name(harness.Rand())
		harness.Require(memcacheds.strictlyAccepts(ctx, fields{sizeField.name: 3, portField.name: 11211}))
		harness.Require(memcacheds.strictlyRefuses(ctx, fields{sizeField.name: 3, unknown: 3}, unknown))
	})

	harness.Check("spec-required", func(ctx SpecContext) {
		memcacheds := open(ctx)
		harness.Require(memcacheds.refusesNoSpec(ctx))
		harness.Require(memcacheds.acceptsSpec(ctx, fields{sizeField.name: 2, portField.name: 11211}))
	})

	harness.Check("defaults-apply", func(ctx SpecContext) {
		memcacheds := open(ctx)
		harness.Require(memcacheds.defaults(ctx, fields{sizeField.name: 1, portField.name: 11211}))
	})

	harness.Check("conditions-list-map", func(ctx SpecContext) {
		memcacheds := open(ctx)
		harness.Require(memcacheds.hasConditions())
		obj := memcacheds.some(ctx)
		harness.Require(memcacheds.mergesConditions(ctx, obj, "Available", "Lab"+harness.Name(harness.Rand())))
		harness.Require(memcacheds.refusesDuplicates(ctx, obj, "Available"))
	})

	harness.Check("status-subresource", func(ctx SpecContext) {
		memcacheds := open(ctx)
		harness.Require(memcacheds.ServesStatus())
		obj := memcacheds.some(ctx)
		harness.Require(memcacheds.statusDoorWritesStatusOnly(ctx, obj))
		harness.Require(memcacheds.mainDoorLeavesStatus(ctx, obj))
	})
})

// field is one of the two fields of the spec, and the causes of what can be wrong with it.
type field struct{ name, lost, refused string }

var (
	sizeField = field{name: "size", lost: "size-lost", refused: "size-refused"}
	portField = field{name: "containerPort", lost: "port-lost", refused: "port-refused"}
)

// fields is the spec of a Memcached.
type fields map[string]int64

// path is how the API server names the field.
func (f field) path() string { return "spec." + f.name }

func (f field) String() string { return fmt.Sprintf("`%s`", f.path()) }

// Causes of a value that should have been refused.
const (
	tooSmall   = "too-small-accepted"
	tooBig     = "too-big-accepted"
	notANumber = "string-accepted"
)
