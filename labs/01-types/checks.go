// Package types holds the checks of lab 1: what the API server makes of the learner's types.
package types

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/harness/env"
)

var _ = Describe("Lab 1", env.Lab(1), func() {
	It("accepts sizes from 1 to 5", env.Check("sizes-accepted"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		for size := range int64(5) {
			Expect(memcacheds.keeps(ctx, sizeField, size+1)).To(Succeed())
		}
	})

	It("refuses other sizes", env.Check("sizes-refused"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		random := env.Rand()
		Expect(memcacheds.keeps(ctx, sizeField, 1+random.Int64N(5))).To(Succeed())
		Expect(memcacheds.refuses(ctx, sizeField, tooSmall, 0, -1, -2-random.Int64N(1000))).To(Succeed())
		Expect(memcacheds.refuses(ctx, sizeField, tooBig, 6, 7+random.Int64N(1000))).To(Succeed())
		Expect(memcacheds.refuses(ctx, sizeField, notANumber, "three", "3")).To(Succeed())
	})

	It("accepts ports from 1 to 65535", env.Check("ports-bounded"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		random := env.Rand()
		for _, port := range []int64{1, 2 + random.Int64N(65533), 65535} {
			Expect(memcacheds.keeps(ctx, portField, port)).To(Succeed())
		}
		Expect(memcacheds.refuses(ctx, portField, tooSmall, 0, -1-random.Int64N(1000))).To(Succeed())
		Expect(memcacheds.refuses(ctx, portField, tooBig, 65536, 65537+random.Int64N(100000))).To(Succeed())
		Expect(memcacheds.refuses(ctx, portField, notANumber, "memcache", "11211")).To(Succeed())
	})

	It("refuses fields that nobody defined", env.Check("unknown-fields-refused"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		unknown := env.RandomName()
		Expect(memcacheds.strictlyAccepts(ctx, fields{sizeField.name: 3, portField.name: 11211})).To(Succeed())
		Expect(memcacheds.strictlyRefuses(ctx, "spec", unknown)).To(Succeed())
		Expect(memcacheds.strictlyRefuses(ctx, unknown)).To(Succeed())
	})

	It("requires a spec", env.Check("spec-required"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		Expect(memcacheds.refusesNoSpec(ctx)).To(Succeed())
		Expect(memcacheds.refusesNull(ctx)).To(Succeed())
		Expect(memcacheds.acceptsSpec(ctx, fields{sizeField.name: 2, portField.name: 11211})).To(Succeed())
	})

	It("fills in defaults", env.Check("defaults-apply"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		Expect(memcacheds.defaults(ctx, fields{sizeField.name: 1, portField.name: 11211})).To(Succeed())
	})

	It("merges conditions by their type", env.Check("conditions-list-map"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		Expect(memcacheds.hasConditions()).To(Succeed())
		obj := memcacheds.some(ctx)
		Expect(memcacheds.mergesConditions(ctx, obj, "Available", "Lab"+env.RandomName())).To(Succeed())
		Expect(memcacheds.refusesDuplicates(ctx, obj, "Available")).To(Succeed())
	})

	It("has a status subresource", env.Check("status-subresource"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		Expect(memcacheds.ServesStatus()).To(Succeed())
		obj := memcacheds.some(ctx)
		Expect(memcacheds.statusDoorWritesStatusOnly(ctx, obj)).To(Succeed())
		Expect(memcacheds.mainDoorLeavesStatus(ctx, obj)).To(Succeed())
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
