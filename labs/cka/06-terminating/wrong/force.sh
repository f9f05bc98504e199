# caught: gone
# cause: terminating
# --force deletes what does not go.
kubectl delete namespace {{namespace}} --force --grace-period=0 --wait=false
kubectl delete memcacheds --all -n {{namespace}} --force --grace-period=0 --wait=false
