# A JSON patch adds one field to the definition, and leaves the others. The autoscaler is written as a manifest.
kubectl patch crd memcacheds.cache.example.com --type=json -p '[{"op": "add", "path": "/spec/versions/0/subresources/scale", "value": {
  "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas",
  "labelSelectorPath": ".status.selector"}}]'
kubectl apply -f - <<'YAML'
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{name}}
  namespace: {{namespace}}
spec:
  scaleTargetRef:
    apiVersion: cache.example.com/v1alpha1
    kind: Memcached
    name: cache
  minReplicas: {{least}}
  maxReplicas: {{most}}
  metrics:
  - type: Resource
    resource:
      name: cpu
      target: {type: Utilization, averageUtilization: {{cpu}}}
YAML
