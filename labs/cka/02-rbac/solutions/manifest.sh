# One ClusterRole with two rules, which other namespaces can use as well. A RoleBinding limits it to the namespace that the binding is
# in. `kubectl create clusterrole … --dry-run=client -o yaml` writes the first half of this text.
kubectl apply -f - <<YAML
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: memcached-scaler
rules:
- apiGroups: [cache.example.com]
  resources: [memcacheds]
  verbs: [get, list, watch]
- apiGroups: [cache.example.com]
  resources: [memcacheds/scale]
  verbs: [get, update, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{account}}
  namespace: {{namespace}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: memcached-scaler
subjects:
- kind: ServiceAccount
  name: {{account}}
  namespace: {{team}}
YAML
