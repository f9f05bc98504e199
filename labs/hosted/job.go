package hosted

import (
	"crypto/rand"
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

const (
	// ImageRef is what `make judge-image` calls the image.
	ImageRef = "operator-lab.local/judge:1"
	// QuestionPath is where the Pod finds what it is asked: a [Question], packed.
	QuestionPath = questionDir + "/" + questionFile

	questionDir, questionFile = "/question", "question"

	// user is that of the image.
	user = 65532
	// judgeSeconds bounds a verdict, with all attempts. One takes half a minute.
	judgeSeconds = 30 * 60
	// attempts is how often a Pod is replaced that was lost, or could not judge.
	attempts = 2
	// keepSeconds is how long a Job stays after its end, for one that nobody removes.
	keepSeconds = 10 * 60
)

// limits are the most that a judge gets of its node.
var limits = corev1.ResourceList{
	corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("4Gi"),
}

// Commands of the judge's image.
const (
	checkCommand  = "check"
	canaryCommand = "canary"
)

// What a judge with a sandbox reads from its environment.
const (
	PoolEnv      = "SANDBOX_POOL"
	NamespaceEnv = "POD_NAMESPACE"
	PodNameEnv   = "POD_NAME"
	PodUIDEnv    = "POD_UID"
	JobNameEnv   = "JOB_NAME"
	PodIPEnv     = "POD_IP"
)

// newJob is the Job of one command of the image. A verdict is no reason for another attempt, and a Pod that had to make room for
// others is none of the attempts.
func newJob(what string, s Settings, command string) (*batchv1.Job, error) {
	name := fmt.Sprintf("judge-%s-%s", what, strings.ToLower(rand.Text()[:10]))
	labels := map[string]string{"app.kubernetes.io/managed-by": "operator-lab"}
	pod, err := podSpec(s, name, command)
	if err != nil {
		return nil, err
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](attempts), ActiveDeadlineSeconds: ptr.To[int64](judgeSeconds), TTLSecondsAfterFinished: ptr.To[int32](keepSeconds),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
				{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
					{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
				}},
				{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
					Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{exit.Fail, exit.UsageError, exit.EnvironmentError},
				}},
			}},
		},
	}
	if s.Queue != "" {
		job.Labels["kueue.x-k8s.io/queue-name"] = s.Queue // Kueue suspends it until it is its turn
	}
	if s.Pool != "" {
		labels["app.kubernetes.io/component"] = "judge" // for NetworkPolicies
	}
	job.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod}
	return job, nil
}

// podSpec has all that the Pod Security level restricted asks for, and one writable folder; a token only to claim a sandbox.
// question is the name of the Secret.
func podSpec(s Settings, question, command string) (corev1.PodSpec, error) {
	requests := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: s.CPU, corev1.ResourceMemory: s.Memory} {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return corev1.PodSpec{}, &clusters.Problem{What: fmt.Sprintf("a judge is to ask for %q of %s", text, name), Fix: "edit the ConfigMap " + SettingsName, Err: err}
		}
		requests[name] = quantity
	}
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](user), RunAsGroup: ptr.To[int64](user), FSGroup: ptr.To[int64](user),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: []corev1.Volume{
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("3Gi"))}}},
		},
		Containers: []corev1.Container{{
			Name: "judge", Image: s.Image, Args: []string{command},
			Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
		}},
	}
	judge := &spec.Containers[0]
	if command == checkCommand {
		spec.Volumes = append(spec.Volumes, corev1.Volume{
			Name: "question", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: question}},
		})
		judge.VolumeMounts = append(judge.VolumeMounts, corev1.VolumeMount{Name: "question", MountPath: questionDir, ReadOnly: true})
	}
	if s.Pool != "" {
		spec.ServiceAccountName, spec.AutomountServiceAccountToken = "judge", ptr.To(true)
		judge.Env = []corev1.EnvVar{{Name: PoolEnv, Value: s.Pool}}
		for _, field := range [][2]string{
			{NamespaceEnv, "metadata.namespace"}, {PodNameEnv, "metadata.name"}, {PodUIDEnv, "metadata.uid"}, {PodIPEnv, "status.podIP"},
			{JobNameEnv, "metadata.labels['" + batchv1.JobNameLabel + "']"},
		} {
			judge.Env = append(judge.Env, corev1.EnvVar{Name: field[0], ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field[1]}}})
		}
	}
	return spec, nil
}
