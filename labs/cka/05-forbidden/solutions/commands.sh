# The log names what is forbidden. First everything, at the cluster scope: a RoleBinding counts in its own namespace alone. Then
# Deployments: the API group is apps, v1 is its version.
kubectl logs deployment/memcached-operator -n {{namespace}} | grep -o 'cannot .*' | sort -u || true
kubectl get rolebindings,clusterrolebindings -A -o wide | grep {{account}}
kubectl create clusterrolebinding memcached-operator --clusterrole=memcached-operator --serviceaccount={{namespace}}:{{account}}
kubectl describe clusterrole memcached-operator
kubectl get clusterrole memcached-operator -o yaml | sed 's|^  - apps/v1$|  - apps|' | kubectl replace -f -

# It would try again by itself, within half a minute:
kubectl rollout restart deployment memcached-operator -n {{namespace}}
kubectl wait memcached {{name}} -n {{team}} --for=condition=Available --timeout=60s
kubectl wait memcached {{name}} -n {{other}} --for=condition=Available --timeout=60s
