# caught: others-kept
# cause: definition-deleted
# Without the kind there is nothing to wait for, and what blocks the definition can go, too.
kubectl delete crd memcacheds.cache.example.com --wait=false
kubectl get memcacheds -A --no-headers -o custom-columns=:metadata.namespace,:metadata.name | while read -r namespace name; do
  kubectl patch memcached "$name" -n "$namespace" --type=merge -p '{"metadata": {"finalizers": null}}'
done
kubectl wait --for=delete crd/memcacheds.cache.example.com --timeout=60s
kubectl wait --for=delete namespace/{{namespace}} --timeout=60s
