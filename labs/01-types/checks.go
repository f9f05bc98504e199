// Package types holds the checks of lab 1: what the API server makes of the learner's types.
package types

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/harness/env"
)

var _ = Describe("Lab 1", env.Lab(1), func() {
	It("accepts sizes from 1 to 5", env.Check("sizes-accepted", env.First), func(ctx SpecContext) {
		memcacheds := open(ctx)
		for size := range int64(5) {
			Expect(memcacheds.keeps(ctx, sizeField, size+1)).To(Succeed())
		}
	})

	It("refuses other sizes", env.Check("sizes-refused"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		random := env.Rand()
		Expect(memcacheds.keeps(ctx, sizeField, 1+random.Int64N(5))).To(Succeed())
		Expect(memcacheds.refusesValues(ctx, sizeField, tooSmall, int64(0), int64(-1), -2-random.Int64N(1000))).To(Succeed())
		Expect(memcacheds.refusesValues(ctx, sizeField, tooBig, int64(6), 7+random.Int64N(1000))).To(Succeed())
		Expect(memcacheds.refusesValues(ctx, sizeField, notANumber, "three", "3")).To(Succeed())
	})

	It("accepts ports from 1 to 65535", env.Check("ports-bounded"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		random := env.Rand()
		for _, port := range []int64{1, 2 + random.Int64N(65533), 65535} {
			Expect(memcacheds.keeps(ctx, portField, port)).To(Succeed())
		}
		Expect(memcacheds.refusesValues(ctx, portField, tooSmall, int64(0), -1-random.Int64N(1000))).To(Succeed())
		Expect(memcacheds.refusesValues(ctx, portField, tooBig, int64(65536), 65537+random.Int64N(100000))).To(Succeed())
		Expect(memcacheds.refusesValues(ctx, portField, notANumber, "memcache", "11211")).To(Succeed())
	})

	It("refuses fields that nobody defined", env.Check("unknown-fields-refused"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		unknown := env.RandomName()
		_, err := memcacheds.accepts(ctx, memcacheds.with(valid()), metav1.FieldValidationStrict, "known-field-refused",
			"`spec.size` and `spec.containerPort` accepted under strict validation")
		Expect(err).To(Succeed())
		Expect(memcacheds.refusesUnknown(ctx, "spec", unknown)).To(Succeed())
		Expect(memcacheds.refusesUnknown(ctx, unknown)).To(Succeed())
	})

	It("requires a spec", env.Check("spec-required"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		Expect(memcacheds.refuses(ctx, memcacheds.with(nil), metav1.FieldValidationIgnore, "spec", optional)).To(Succeed())
		null := memcacheds.with(nil)
		null.Object["spec"] = nil
		Expect(memcacheds.refuses(ctx, null, metav1.FieldValidationIgnore, "spec", "spec-nullable")).To(Succeed())
		_, err := memcacheds.accepts(ctx, memcacheds.with(valid()), metav1.FieldValidationIgnore, "spec-refused", "a Memcached with a valid `spec` accepted")
		Expect(err).To(Succeed()) // only then was the missing spec what the refusals were about
	})

	It("fills in defaults", env.Check("defaults-apply"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		Expect(memcacheds.fillsIn(ctx, spec{})).To(Succeed())
		Expect(memcacheds.fillsIn(ctx, spec{sizeField.name: nil, portField.name: nil})).To(Succeed())
	})

	It("merges conditions by their type", env.Check("conditions-list-map"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		Expect(memcacheds.hasConditions()).To(Succeed())
		obj := memcacheds.stored(ctx)
		Expect(memcacheds.mergesConditions(ctx, obj, "Available", "Lab"+env.RandomName())).To(Succeed())
		Expect(memcacheds.refusesDuplicates(ctx, obj, "Available")).To(Succeed())
	})

	It("has a status subresource", env.Check("status-subresource"), func(ctx SpecContext) {
		memcacheds := open(ctx)
		Expect(memcacheds.ServesStatus()).To(Succeed())
		obj := memcacheds.stored(ctx)
		Expect(memcacheds.statusWriteLeavesSpec(ctx, obj)).To(Succeed())
		Expect(memcacheds.specWriteLeavesStatus(ctx, obj)).To(Succeed())
	})
})

// field is one of the two fields of the spec, its default, and the causes of what can be wrong with it.
type field struct {
	name                                     string
	value                                    int64
	lost, refused, noDefault, anotherDefault string
}

var (
	sizeField = field{"size", 1, "size-lost", "size-refused", "no-size-default", "wrong-size-default"}
	portField = field{"containerPort", 11211, "port-lost", "port-refused", "no-port-default", "wrong-port-default"}
)

// path is how the API server names the field.
func (f field) path() string { return "spec." + f.name }

// Causes of what should have been refused: a value of a field, or a Memcached without a spec.
const (
	tooSmall   = "too-small-accepted"
	tooBig     = "too-big-accepted"
	notANumber = "string-accepted"
	optional   = "spec-optional"
	defaulted  = "spec-defaulted"
)
