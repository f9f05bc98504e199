# caught: nothing-left
# cause: orphaned
# The finalizer that the namespace waits for is its own.
kubectl get namespace {{namespace}} -o json | sed 's/"kubernetes"//' |
  kubectl replace --raw /api/v1/namespaces/{{namespace}}/finalize -f -
