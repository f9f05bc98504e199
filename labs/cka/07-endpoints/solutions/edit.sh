# The selector and the labels of the Pods differ in `track`. A JSON patch names the two fields; `kubectl edit` does the same by hand.
# The name of the container's port in place of its number: the Service then follows when the number changes.
kubectl get endpointslices,service -n {{namespace}} -o wide
kubectl get pods -n {{namespace}} --show-labels
kubectl patch service {{service}} -n {{namespace}} --type=json -p '[
  {"op": "remove", "path": "/spec/selector/track"},
  {"op": "replace", "path": "/spec/ports/0/targetPort", "value": "memcached"}]'
kubectl get endpointslices -n {{namespace}}
