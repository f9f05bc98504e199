package embeddedtest

import (
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/contract"
)

func TestEmbeddedKeepsTheContract(t *testing.T) {
	e, _ := newProvider(t)
	contract.Test(t, e, clusters.Spec{Workers: 1})
}
