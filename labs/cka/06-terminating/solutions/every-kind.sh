# Where the namespace does not say it: look through every kind that lists objects in namespaces, and free what has a deletionTimestamp.
# `kubectl edit` does the same for one object; here replace takes the object back without the list.
for kind in $(kubectl api-resources --verbs=list --namespaced -o name); do
  kubectl get "$kind" -n {{namespace}} -o name --ignore-not-found 2>/dev/null
done | sort -u | grep -v '^event' >left
while read -r object; do
  kubectl get "$object" -n {{namespace}} -o yaml --show-managed-fields=false | sed '/^  finalizers:/,/^  -/d' >object.yaml
  kubectl replace -n {{namespace}} -f object.yaml
done <left
kubectl wait --for=delete namespace/{{namespace}} --timeout=60s
