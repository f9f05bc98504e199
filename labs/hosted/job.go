package hosted

import (
	"crypto/rand"
	"fmt"
	"maps"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// ImageRef is what `make judge-image` calls the image.
	ImageRef = "operator-lab.local/judge:1"
	// CheckCommand is that of the image's program, before the number of the lab and the seed.
	CheckCommand = "check"
	// HandInPath is where a judge finds what it judges: a folder, or a zip.
	HandInPath = "/lab/" + handInFile
	// NodeEnv is where a Pod finds the address of its node.
	NodeEnv = "NODE_IP"

	handInFile = "hand-in"

	// verdictLabel is on all that belongs to one verdict, with its name.
	verdictLabel = "operator-lab.example.com/verdict"
	// queueLabel has Kueue admit a Job when it is its turn (https://kueue.sigs.k8s.io/docs/tasks/run/jobs/).
	queueLabel = "kueue.x-k8s.io/queue-name"

	// judgeSeconds bounds a verdict, with all attempts. One takes half a minute.
	judgeSeconds = 30 * 60
	// attempts is how often a Pod is replaced that was lost. One that judged, or knows why it cannot, ends well.
	attempts = 2
	// lostSeconds is how long a Pod is waited for whose node does not answer.
	lostSeconds = 30
	// keepSeconds is how long a Job stays after its end, for one that nobody removes.
	keepSeconds = 10 * 60
)

// requests are what a judge asks of its node, and limits the most that it gets.
var (
	requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1536Mi")}
	limits   = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("6Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
)

// Capabilities are those of root in a judge's container: it gives each program of the learner a user of its own, and ends
// it. The Pod Security level baseline allows them.
func Capabilities() []corev1.Capability {
	return []corev1.Capability{"SETUID", "SETGID", "CHOWN", "KILL", "DAC_OVERRIDE", "FOWNER"}
}

// newJob is the Job of a verdict.
func (j *Judges) newJob(r Request) *batchv1.Job {
	name := fmt.Sprintf("judge-lab-%d-%s", r.Lab, strings.ToLower(rand.Text()[:10]))
	labels := map[string]string{"app.kubernetes.io/managed-by": "operator-lab", verdictLabel: name}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)}, // a Pod has no queue
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](attempts), ActiveDeadlineSeconds: ptr.To[int64](judgeSeconds), TTLSecondsAfterFinished: ptr.To[int32](keepSeconds),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: j.podSpec(name, r)},
		},
	}
	if j.Queue != "" {
		job.Labels[queueLabel] = j.Queue
	}
	return job
}

// podSpec has root in a user namespace of its own, so that it is nobody on the node, unless HostUsers is set.
func (j *Judges) podSpec(secret string, r Request) corev1.PodSpec {
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		HostUsers: ptr.To(j.HostUsers),
		Tolerations: []corev1.Toleration{ // a node that is lost is waited for, by default for five minutes
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](lostSeconds)},
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](lostSeconds)},
		},
		SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Volumes: []corev1.Volume{
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("4Gi")),
			}}},
			{Name: handInFile, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}},
		},
		Containers: []corev1.Container{{
			Name: "judge", Image: j.Image, Args: []string{CheckCommand, strconv.Itoa(r.Lab), strconv.FormatInt(r.Seed, 10)},
			Env: []corev1.EnvVar{
				{Name: NodeEnv, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}}},
			},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Resources:                corev1.ResourceRequirements{Requests: requests, Limits: limits},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: Capabilities()},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}, {Name: handInFile, MountPath: HandInPath, SubPath: handInFile, ReadOnly: true}},
		}},
	}
	if j.RuntimeClass != "" {
		spec.RuntimeClassName = &j.RuntimeClass
	}
	return spec
}
