// Package types holds the checks of lab 1: what the API server makes of the learner's types.
package types

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/harness/env"
)

var _ = Describe("Lab 1", env.Lab(1), func() {
	var m memcacheds
	BeforeEach(func(ctx SpecContext) { m = open(ctx) })

	It("accepts sizes from 1 to 5", env.Check("sizes-accepted"), func(ctx SpecContext) {
		Expect(m.keeps(ctx, sizeField, 1, 2, 3, 4, 5)).To(Succeed())
	})

	It("refuses other sizes", env.Check("sizes-refused"), func(ctx SpecContext) {
		Expect(m.keeps(ctx, sizeField, 3)).To(Succeed()) // only then are the refusals about the values
		Expect(m.refuses(ctx, sizeField, "too-small-accepted", int64(0), int64(-1))).To(Succeed())
		Expect(m.refuses(ctx, sizeField, "too-big-accepted", int64(6), int64(1000))).To(Succeed())
		Expect(m.refuses(ctx, sizeField, "string-accepted", "three", "3")).To(Succeed())
	})

	It("accepts ports from 1 to 65535", env.Check("ports-bounded"), func(ctx SpecContext) {
		Expect(m.keeps(ctx, portField, 1, 11211, 65535)).To(Succeed())
		Expect(m.refuses(ctx, portField, "too-small-accepted", int64(0), int64(-1))).To(Succeed())
		Expect(m.refuses(ctx, portField, "too-big-accepted", int64(65536), int64(100000))).To(Succeed())
		Expect(m.refuses(ctx, portField, "string-accepted", "memcache", "11211")).To(Succeed())
	})

	It("refuses fields that nobody defined", env.Check("unknown-fields-refused"), func(ctx SpecContext) {
		_, err := m.accepts(ctx, m.with(valid()), metav1.FieldValidationStrict, "known-field-refused",
			"`spec.size` and `spec.containerPort` accepted under strict validation")
		Expect(err).To(Succeed())
		Expect(m.refusesUnknown(ctx, "spec", "replicas")).To(Succeed())
		Expect(m.refusesUnknown(ctx, "replicas")).To(Succeed())
	})

	It("requires a spec", env.Check("spec-required"), func(ctx SpecContext) {
		_, err := m.accepts(ctx, m.with(valid()), metav1.FieldValidationIgnore, "spec-refused", "a Memcached with a valid `spec` accepted")
		Expect(err).To(Succeed()) // only then are the refusals about the missing spec
		without, null := m.with(nil), m.with(nil)
		delete(without.Object, "spec")
		Expect(m.refusesObject(ctx, without, metav1.FieldValidationIgnore, "spec", "spec-optional")).To(Succeed())
		Expect(m.refusesObject(ctx, null, metav1.FieldValidationIgnore, "spec", "spec-nullable")).To(Succeed())
	})

	It("fills in defaults", env.Check("defaults-apply"), func(ctx SpecContext) {
		Expect(m.fillsIn(ctx, map[string]any{})).To(Succeed())
		Expect(m.fillsIn(ctx, map[string]any{"size": nil, "containerPort": nil})).To(Succeed())
	})

	It("merges conditions by their type", env.Check("conditions-list-map"), func(ctx SpecContext) {
		Expect(hasListMap(m.Property("status", "conditions"), m.Fields("status"))).To(Succeed())
		_, err := m.writeConditions(ctx, "Available", "Inspected")
		Expect(err).To(Succeed())
	})

	It("has a status subresource", env.Check("status-subresource"), func(ctx SpecContext) {
		Expect(m.ServesStatus()).To(Succeed())
		written, err := m.writeConditions(ctx, "Available")
		Expect(err).To(Succeed())
		Expect(m.hasCondition(written)).To(Succeed())
	})
})
