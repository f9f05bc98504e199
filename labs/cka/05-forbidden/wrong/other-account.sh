# caught: works
# cause: no-binding
# Another ServiceAccount with more rights does it.
kubectl create serviceaccount admin -n {{namespace}}
kubectl create clusterrolebinding admin --clusterrole=cluster-admin --serviceaccount={{namespace}}:admin
kubectl set serviceaccount deployment memcached-operator -n {{namespace}} admin
kubectl wait memcached {{name}} -n {{team}} --for=condition=Available --timeout=60s
