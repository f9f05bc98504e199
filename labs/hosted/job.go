package hosted

import (
	"crypto/rand"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/labs/internal/cli/exit"
)

const (
	// ImageRef is what `make judge-image` calls the image.
	ImageRef = "operator-lab.local/judge:1"
	// QuestionPath is where the Pod finds what it is asked: a [Question], packed.
	QuestionPath = questionDir + "/" + questionFile

	questionDir, questionFile = "/question", "question"

	// judgeSeconds bounds a verdict, with all attempts. One takes half a minute.
	judgeSeconds = 30 * 60
	// attempts is how often a Pod is replaced that was lost, or could not judge.
	attempts = 2
	// keepSeconds is how long a Job stays after its end, for one that nobody removes.
	keepSeconds = 10 * 60
)

// What a judge asks of a node, and the most that it gets.
var (
	requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1536Mi")}
	limits   = corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("4Gi"),
	}
)

// newJob is the Job of one verdict. A verdict is no reason for another attempt, and a Pod that had to make room for others is
// none of the attempts.
func newJob(lab int, image string) *batchv1.Job {
	name := fmt.Sprintf("judge-lab-%d-%s", lab, strings.ToLower(rand.Text()[:10]))
	labels := map[string]string{"app.kubernetes.io/managed-by": "operator-lab"}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
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
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(image, name)},
		},
	}
}

// podSpec has all that the Pod Security level restricted asks for, no token, and one writable folder. question is the name of
// the Secret.
func podSpec(image, question string) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), FSGroup: ptr.To[int64](65532),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: []corev1.Volume{
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("3Gi"))}}},
			{Name: "question", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: question}}},
		},
		Containers: []corev1.Container{{
			Name: "judge", Image: image, Args: []string{"check"},
			Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "tmp", MountPath: "/tmp"}, {Name: "question", MountPath: questionDir, ReadOnly: true},
			},
		}},
	}
}
