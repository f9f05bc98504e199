// Package crd holds the checks of lab 3: the manifest in the workspace, and what the API server makes
// of it.
package crd

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/example/operator-lab/labs/harness"
)

var _ = harness.Lab(3, func() {
	harness.Check("crd-generated", func(ctx SpecContext) {
		_, err := harness.Manifest()
		harness.Require(unreadable(err))
		have, err := harness.Manifests()
		harness.Require(unreadable(err))
		generator, err := harness.Generator(ctx)
		harness.Require(err)
		want, err := generator.CustomResources(ctx)
		harness.Require(err)
		harness.Require(areGenerated(have, want))
	})

	harness.Check("crd-established", func(ctx SpecContext) {
		definition, _ := open(ctx)
		harness.Require(isEstablished(definition))
	})

	harness.Check("crd-names", func(ctx SpecContext) {
		definition, _ := open(ctx)
		harness.Require(hasNames(definition))
	})

	harness.Check("crd-status-subresource", func(ctx SpecContext) {
		_, memcacheds := open(ctx)
		harness.Require(memcacheds.ServesStatus())
	})

	harness.Check("crd-columns", func(ctx SpecContext) {
		_, memcacheds := open(ctx)
		size := 1 + harness.Rand().Int64N(5)
		obj := create(ctx, memcacheds, map[string]any{"size": size})
		columns, err := memcacheds.Columns(ctx, obj)
		harness.Require(err)
		harness.Require(hasColumns(columns, "Size", "Available", "Age"))
		harness.Require(showsSize(columns, size))
		harness.Require(showsAge(columns))
		harness.Require(showsAvailable(ctx, memcacheds, obj, "True", "False", "Unknown"))
	})

	harness.Check("crd-descriptions", func(ctx SpecContext) {
		_, memcacheds := open(ctx)
		harness.Require(describes(ctx, memcacheds))
		harness.Require(describes(ctx, memcacheds, "spec", "size"))
		harness.Require(describes(ctx, memcacheds, "spec", "containerPort"))
	})

	harness.Check("sample-accepted", func(ctx SpecContext) {
		_, memcacheds := open(ctx)
		samples, err := samples(harness.Run().Workspace)
		harness.Require(err)
		for _, sample := range samples {
			harness.Require(keeps(ctx, memcacheds, sample))
		}
	})
})
