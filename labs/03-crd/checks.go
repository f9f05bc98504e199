// Package crd holds the checks of lab 3: the manifest in the workspace, and what the API server makes
// of it.
package crd

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/harness/env"
)

var _ = Describe("Lab 3", env.Lab(3), func() {
	It("has the manifest that controller-gen writes", env.Check("crd-generated", env.First), func(_ SpecContext) {
		have, err := env.Manifests()
		Expect(unreadable(err)).To(Succeed())
		made, err := env.Generated()
		Expect(err).To(Succeed())
		want, err := made.CRD.Manifests()
		Expect(err).To(Succeed())
		Expect(areGenerated(have, want)).To(Succeed())
	})

	It("is Established", env.Check("crd-established"), func(ctx SpecContext) {
		definition, _ := open(ctx)
		Expect(isEstablished(definition)).To(Succeed())
	})

	It("has its names", env.Check("crd-names"), func(ctx SpecContext) {
		definition, _ := open(ctx)
		Expect(hasNames(definition)).To(Succeed())
	})

	It("serves the status subresource", env.Check("crd-status-subresource"), func(ctx SpecContext) {
		_, memcacheds := open(ctx)
		Expect(memcacheds.ServesStatus()).To(Succeed())
	})

	It("shows columns", env.Check("crd-columns"), func(ctx SpecContext) {
		_, memcacheds := open(ctx)
		size := 1 + env.Rand().Int64N(5)
		obj, err := create(ctx, memcacheds, size)
		Expect(err).To(Succeed())
		columns, err := memcacheds.Columns(ctx, obj, nil)
		Expect(err).To(Succeed())
		Expect(hasColumns(columns, "Size", "Available", "Age")).To(Succeed())
		Expect(showsSize(columns, size)).To(Succeed())
		Expect(showsAge(columns)).To(Succeed())
		Expect(showsAvailable(ctx, memcacheds, obj, "True", "False", "Unknown")).To(Succeed())
	})

	It("explains its fields", env.Check("crd-descriptions"), func(ctx SpecContext) {
		_, memcacheds := open(ctx)
		Expect(describes(ctx, memcacheds)).To(Succeed())
		Expect(describes(ctx, memcacheds, "spec", "size")).To(Succeed())
		Expect(describes(ctx, memcacheds, "spec", "containerPort")).To(Succeed())
	})

	It("accepts the samples", env.Check("sample-accepted"), func(ctx SpecContext) {
		_, memcacheds := open(ctx)
		samples, err := samples(env.Run().Workspace)
		Expect(err).To(Succeed())
		namespace := memcacheds.Object(env.Namespace(ctx), "").GetNamespace() // none if they live in none
		for _, sample := range samples {
			Expect(keeps(ctx, memcacheds, namespace, sample)).To(Succeed())
		}
	})
})
