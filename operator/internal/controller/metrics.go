// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// lab:11 begin metric

// availableReplicas is a metric with a series for each Memcached.
var availableReplicas = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "memcached_available_replicas",
	Help: "Number of available Pods of a Memcached.",
}, []string{"namespace", "name"})

// The manager serves this registry, and not the default one of Prometheus.
func init() { metrics.Registry.MustRegister(availableReplicas) }

// lab:11 end
