# One edit of the manifest does all of it: so the way back is gentle, too. `kubectl edit` is the same by hand. Without resourceVersion,
# replace does not mind that the status has changed since.
kubectl get deployment {{name}} -n {{namespace}} -o yaml >deployment.yaml
sed -i -e 's/--memory-limit=.*/--memory-limit={{memory}}/' -e 's|image: .*|image: operator-lab.local/memcached:1.6.18|' \
  -e 's/maxSurge: .*/maxSurge: 1/' -e 's/maxUnavailable: .*/maxUnavailable: 0/' -e '/^  resourceVersion:/d' deployment.yaml
kubectl replace -f deployment.yaml
kubectl rollout status deployment {{name}} -n {{namespace}} --timeout=60s
