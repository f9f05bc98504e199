# Commands alone. create role takes one list of verbs for all its resources, so there are two roles: the scale needs other verbs than
# the Memcached. The binding is in the namespace of the Memcacheds; the subject names the namespace of the ServiceAccount.
kubectl create role memcached-reader -n {{namespace}} \
  --verb=get,list,watch --resource=memcacheds.cache.example.com
kubectl create role memcached-scaler -n {{namespace}} \
  --verb=get,update,patch --resource=memcacheds.cache.example.com/scale
kubectl create rolebinding {{account}}-reads -n {{namespace}} \
  --role=memcached-reader --serviceaccount={{team}}:{{account}}
kubectl create rolebinding {{account}}-scales -n {{namespace}} \
  --role=memcached-scaler --serviceaccount={{team}}:{{account}}

# Try it as the ServiceAccount:
kubectl scale memcached cache --replicas=2 -n {{namespace}} --as=system:serviceaccount:{{team}}:{{account}}
