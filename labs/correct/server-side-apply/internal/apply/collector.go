package apply

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.org/applied/api/v1alpha1"
)

var availableReplicas = prometheus.NewDesc("memcached_available_replicas", "Servers that are available.", []string{"namespace", "name"}, nil)

// Collect makes all series anew at each scrape, from what the cache has. So none has to be ended.
func Collect(cached client.Reader) prometheus.CollectorFunc {
	return func(series chan<- prometheus.Metric) {
		memcacheds := &cachev1alpha1.MemcachedList{}
		if err := cached.List(context.Background(), memcacheds); err != nil {
			series <- prometheus.NewInvalidMetric(availableReplicas, err)
		}
		for _, m := range memcacheds.Items {
			d := &appsv1.Deployment{} // without one, no server is available
			_ = cached.Get(context.Background(), client.ObjectKeyFromObject(&m), d)
			series <- prometheus.MustNewConstMetric(availableReplicas, prometheus.GaugeValue, float64(d.Status.AvailableReplicas), m.Namespace, m.Name)
		}
	}
}
