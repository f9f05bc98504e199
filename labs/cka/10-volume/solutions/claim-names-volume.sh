# Without claimRef, the volume is Available. The new claim names it, so that it gets this one and not the spare one.
kubectl patch pv {{volume}} --type=json -p '[{"op": "remove", "path": "/spec/claimRef"}]'
kubectl apply -f - <<'YAML'
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{claim}}
  namespace: {{namespace}}
spec:
  storageClassName: node-folder
  volumeName: {{volume}}
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 2Gi}}
YAML
kubectl rollout status deployment {{name}} -n {{namespace}} --timeout=60s
