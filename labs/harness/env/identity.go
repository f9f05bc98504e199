package env

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/suite"
)

const (
	systemNamespace = "lab-system"
	tokenSeconds    = 2 * 60 * 60 // longer than any run
)

// createAccount makes the ServiceAccount that the manager works as, and binds it to cluster-admin, or to exactly what the
// generated role says.
func createAccount(ctx context.Context) error {
	if err := ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}); err != nil {
		return err
	}
	if err := ensure(ctx, account()); err != nil {
		return err
	}
	if !current.config.UnderRole {
		return bind(ctx, "ClusterRole", "cluster-admin", "")
	}
	roles, err := suite.ReadRoles(current.config.Workspace)
	if err != nil {
		return nil //nolint:nilerr // a missing or damaged role is the learner's; the checks of lab 7 report it
	}
	for i, role := range roles {
		// Not its own name: a role that is called like one of Kubernetes' would get that one's rights.
		role.SetName(fmt.Sprintf("lab-%s-%d", current.shared.Run, i))
		err := grant(ctx, role)
		if refused := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err); err != nil && !refused {
			return err // one that the API server does not take is the learner's, too
		}
	}
	return nil
}

// grant creates a role, and binds the account to it.
func grant(ctx context.Context, role client.Object) error {
	kind, namespace := "ClusterRole", role.GetNamespace()
	if namespace != "" {
		kind = "Role"
		if err := ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return err
		}
	}
	if err := ensure(ctx, role); err != nil {
		return err
	}
	return bind(ctx, kind, role.GetName(), namespace)
}

func bind(ctx context.Context, kind, role, namespace string) error {
	meta := metav1.ObjectMeta{Name: accountName() + "-" + role, Namespace: namespace}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: accountName()}}
	if namespace != "" {
		return ensure(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
	}
	return ensure(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
}

func ensure(ctx context.Context, obj client.Object) error {
	err := current.admin.Create(ctx, obj)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// requestToken asks for a token of that account.
func requestToken(ctx context.Context) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	if err := current.admin.SubResource("token").Create(ctx, account(), request); err != nil {
		return "", fmt.Errorf("request a token for the manager: %w", err)
	}
	return request.Status.Token, nil
}

func account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: accountName()}}
}

func accountName() string {
	if current.config.UnderRole {
		return "manager-under-role"
	}
	return "manager"
}

// managerUser is the name under which the API server knows the manager.
func managerUser() string {
	return "system:serviceaccount:" + systemNamespace + ":" + accountName()
}
