# The namespace says what it waits for; the Memcached with the finalizer gets an empty list of them. The namespace then goes by itself,
# within some seconds.
kubectl get namespace {{namespace}} -o jsonpath='{range .status.conditions[?(@.status=="True")]}{.type}: {.message}{"\n"}{end}'
kubectl get memcacheds -n {{namespace}}
kubectl patch memcached sessions -n {{namespace}} --type=merge -p '{"metadata": {"finalizers": null}}'
kubectl wait --for=delete namespace/{{namespace}} --timeout=60s
