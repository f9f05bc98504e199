# caught: others-kept
# cause: finalizer-removed
# A finalizer whose operator is gone can go everywhere.
kubectl get memcacheds -A --no-headers -o custom-columns=:metadata.namespace,:metadata.name | while read -r namespace name; do
  kubectl patch memcached "$name" -n "$namespace" --type=merge -p '{"metadata": {"finalizers": null}}'
done
kubectl wait --for=delete namespace/{{namespace}} --timeout=60s
