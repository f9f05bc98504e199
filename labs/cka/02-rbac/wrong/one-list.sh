# caught: no-more
# cause: writes
# One list of verbs is enough for both resources.
kubectl create role scaler -n {{namespace}} --verb=get,list,watch,update,patch --resource=memcacheds,memcacheds/scale
kubectl create rolebinding scaler -n {{namespace}} --role=scaler --serviceaccount={{team}}:{{account}}
