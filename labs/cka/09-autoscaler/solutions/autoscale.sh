# `kubectl edit crd` and `kubectl autoscale`, so to speak: both begin with what kubectl prints, and change it. kubectl autoscale takes
# no custom resource; so it prints an autoscaler for the Deployment, which then gets another target. From kubectl 1.34 on, the flag is
# --cpu={{cpu}}%.
kubectl get crd memcacheds.cache.example.com -o yaml |
  sed 's/^      status: {}/&\n      scale:\n        specReplicasPath: .spec.size\n        statusReplicasPath: .status.replicas\n        labelSelectorPath: .status.selector/' |
  kubectl replace -f -
kubectl autoscale deployment cache -n {{namespace}} --name={{name}} --min={{least}} --max={{most}} --cpu-percent={{cpu}} --dry-run=client -o yaml |
  sed -e 's|apiVersion: apps/v1|apiVersion: cache.example.com/v1alpha1|' -e 's/kind: Deployment/kind: Memcached/' |
  kubectl create -n {{namespace}} -f -
