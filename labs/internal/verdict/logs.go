package verdict

import (
	"context"
	"path/filepath"
	"time"
)

// logsLimit is how long the logs of a cluster may take to be copied. They are for whoever looks into what
// is wrong with the machine; nobody waits longer for them.
const logsLimit = 15 * time.Second

// keepLogs copies what the cluster's nodes logged into the run's artifacts when the environment is at
// fault. A cluster that has none to give has been told about already.
func (r *run) keepLogs(ctx context.Context, environment Finding) {
	if environment.Finding == "" || !r.cluster.Logs {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logsLimit)
	defer cancel()
	_ = r.Clusters.Provider().CollectLogs(ctx, r.cluster.Name, filepath.Join(r.artifacts, r.cluster.Provider))
}
