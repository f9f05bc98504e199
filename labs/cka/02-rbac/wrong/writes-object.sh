# caught: scales
# cause: no-scale
# kubectl scale changes spec.size, so it needs update and patch of the Memcached.
kubectl create role scaler -n {{namespace}} --verb=get,list,watch,update,patch --resource=memcacheds
kubectl create rolebinding scaler -n {{namespace}} --role=scaler --serviceaccount={{team}}:{{account}}
