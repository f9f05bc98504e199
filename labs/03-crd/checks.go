// Package crd holds the checks of lab 3: the manifest in the workspace, and what the API server makes of it.
package crd

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/harness/env"
)

var _ = Describe("Lab 3", env.Lab(3), func() {
	It("has the manifest that controller-gen writes", env.Check("crd-generated"), func(_ SpecContext) {
		have, err := env.Manifests()
		Expect(err).To(Succeed())
		made, err := env.Generated()
		Expect(err).To(Succeed())
		want, err := made.CRD.Manifests()
		Expect(err).To(Succeed())
		Expect(areGenerated(have, want)).To(Succeed())
	})

	It("is Established", env.Check("crd-established"), func(ctx SpecContext) {
		open(ctx)
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
		columns, err := columns(ctx, memcacheds, 4, "Unknown")
		Expect(err).To(Succeed())
		Expect(shows(columns, "Size", "4")).To(Succeed())
		Expect(shows(columns, "Available", "Unknown")).To(Succeed())
		Expect(shows(columns, "Age", age)).To(Succeed())
	})

	It("explains its fields", env.Check("crd-descriptions"), func(ctx SpecContext) {
		_, memcacheds := open(ctx)
		Expect(describes(memcacheds)).To(Succeed())
		Expect(describes(memcacheds, "spec", "size")).To(Succeed())
		Expect(describes(memcacheds, "spec", "containerPort")).To(Succeed())
	})

	It("accepts the samples", env.Check("sample-accepted"), func(ctx SpecContext) {
		_, memcacheds := open(ctx)
		samples, err := samples(env.Run().Workspace)
		Expect(err).To(Succeed())
		namespace := env.Namespace(ctx)
		for _, sample := range samples {
			Expect(accepts(ctx, memcacheds, namespace, sample)).To(Succeed())
		}
	})
})
