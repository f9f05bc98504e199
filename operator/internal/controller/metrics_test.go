// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func TestSeriesLastsAsLongAsItsMemcached(t *testing.T) {
	g := NewWithT(t)
	o := newOutside(t)
	_, err := o.pass()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hasSeries(g, o.memcache.Name)).To(BeTrue())

	g.Expect(o.cluster.Delete(context.Background(), o.memcache)).To(Succeed())
	for range 2 { // the first one removes the finalizer
		_, err = o.pass()
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(hasSeries(g, o.memcache.Name)).To(BeFalse())
}

// hasSeries tells whether the manager serves a series of its own metric for a Memcached.
func hasSeries(g *WithT, name string) bool {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, series := range family.Metric {
			if family.GetName() == "memcached_available_replicas" && series.Label[0].GetValue() == name { // the labels are sorted
				return true
			}
		}
	}
	return false
}
