# A ClusterRole of its own for Deployments, and two ClusterRoleBindings. The RoleBinding is not needed any more.
kubectl delete rolebinding memcached-operator -n {{namespace}}
kubectl apply -f - <<YAML
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: memcached-operator-deployments}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: memcached-operator-deployments}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: memcached-operator-deployments}
subjects: [{kind: ServiceAccount, name: {{account}}, namespace: {{namespace}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: memcached-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: memcached-operator}
subjects: [{kind: ServiceAccount, name: {{account}}, namespace: {{namespace}}}]
YAML
kubectl wait memcached {{name}} -n {{team}} --for=condition=Available --timeout=100s
kubectl wait memcached {{name}} -n {{other}} --for=condition=Available --timeout=100s
