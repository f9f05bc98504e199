# caught: works
# cause: no-binding
# The rights are needed where the Memcacheds are.
for namespace in {{team}} {{other}}; do
  kubectl create rolebinding memcached-operator -n $namespace --clusterrole=memcached-operator --serviceaccount={{namespace}}:{{account}}
done
kubectl get clusterrole memcached-operator -o yaml | sed 's|^  - apps/v1$|  - apps|' | kubectl replace -f -
kubectl rollout restart deployment memcached-operator -n {{namespace}}
