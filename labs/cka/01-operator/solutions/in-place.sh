# The files themselves: the namespace where kustomize sets it, the image where the Deployment names it. The environment afterwards, with
# a command, which makes the operator restart.
sed -i 's/^namespace: .*/namespace: {{namespace}}/' config/default/kustomization.yaml
sed -i 's|image: controller:latest|image: operator-lab.local/memcached-operator:{{tag}}|' config/manager/manager.yaml
kubectl apply -k config/default
kubectl set env deployment memcached-operator-controller-manager -n {{namespace}} MEMCACHED_IMAGE={{image}}
kubectl rollout status deployment memcached-operator-controller-manager -n {{namespace}} --timeout=60s
sed 's/name: memcached-sample/name: {{name}}/; s/size: .*/size: {{size}}/' config/samples/cache_v1alpha1_memcached.yaml |
  kubectl apply -n {{team}} -f -
kubectl wait memcached {{name}} -n {{team}} --for=condition=Available --timeout=60s
