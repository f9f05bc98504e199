// Package deepcopy holds the checks of lab 2: the generated code, and what copies share when it runs.
package deepcopy

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/harness/env"
)

var _ = Describe("Lab 2", env.Lab(2), func() {
	It("copies a Memcached as a whole", env.Check("copy-shares-nothing"), func(_ SpecContext) {
		copies, err := env.Copies()
		Expect(err).To(Succeed())
		Expect(sharesNothing("Memcached", copies["Memcached"])).To(Succeed())
	})

	It("copies a list as a whole", env.Check("list-copy-shares-nothing"), func(_ SpecContext) {
		copies, err := env.Copies()
		Expect(err).To(Succeed())
		Expect(sharesNothing("MemcachedList", copies["MemcachedList"])).To(Succeed())
	})

	It("has the code that controller-gen writes", env.Check("deepcopy-generated"), func(_ SpecContext) {
		made, err := env.Generated()
		Expect(err).To(Succeed())
		code, err := made.Code()
		Expect(err).To(Succeed())
		Expect(hasGenerated(env.Run().Workspace, code)).To(Succeed())
	})
})
