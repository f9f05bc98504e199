# The other way round: the volume names the claim that may have it, without a uid. So nobody else can take it meanwhile.
kubectl patch pv {{volume}} --type=merge \
  -p '{"spec": {"claimRef": {"name": "{{claim}}", "namespace": "{{namespace}}", "uid": null, "resourceVersion": null}}}'
kubectl apply -f - <<'YAML'
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "{{claim}}", namespace: "{{namespace}}"}
spec:
  storageClassName: node-folder
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 2Gi}}
YAML
kubectl wait pvc {{claim}} -n {{namespace}} --for=jsonpath={.status.phase}=Bound --timeout=60s
