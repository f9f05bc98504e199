package demo

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/trace"
)

// Quiz is lab 0: steps in the life of a Deployment, and who acts in each of them. The right answer is what was seen.
type Quiz []step

// question is one of lab 0.
type question struct {
	ID, Text, Why string
	// Verb, Kind and Name, which is a prefix, are of the action that answers it.
	Verb, Kind, Name string
	// RealPods says that somebody does it only where containers run.
	RealPods bool
}

// nobody is who does what is not done.
const nobody = "nobody"

// actors are whom an answer can name.
var actors = []string{
	trace.You, "kube-apiserver", "deployment-controller", "replicaset-controller", "kube-scheduler", "kubelet", "garbage-collector", nobody,
}

// answer is who was seen doing it.
func (q question) answer(told []trace.Action) string {
	for _, a := range told {
		if a.Verb == q.Verb && a.Kind == q.Kind && strings.HasPrefix(a.Name, q.Name) && a.Actor != trace.You {
			return a.Actor
		}
	}
	return nobody
}

// Answers are what somebody predicts: actors by the ids of the questions.
type Answers map[string]string

// ReadQuiz reads the steps of lab 0 with their questions.
func ReadQuiz(path string) (quiz Quiz, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(data, &quiz)
	}
	if err != nil {
		return nil, fmt.Errorf("read the questions of lab 0: %w", err)
	}
	return quiz, nil
}

// noSpace is an answer right behind the colon, which YAML takes for a part of the name.
var noSpace = regexp.MustCompile(`(?m)^([a-z-]+):([a-z])`)

// ReadAnswers reads a file of answers. open are the questions that have none yet. The error is about the file's content, in one line.
func (quiz Quiz) ReadAnswers(path string) (answers Answers, open []string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read your answers: %w", err)
	}
	data = noSpace.ReplaceAll(data, []byte("$1: $2"))
	if err := yaml.UnmarshalStrict(data, &answers); err != nil {
		return nil, nil, fmt.Errorf("%s: write each answer in the line of its question, as in `makes-the-pods: kubelet` (%s)",
			plain.Path(path), plain.Line(err.Error()))
	}
	var ids []string
	for _, s := range quiz {
		for _, q := range s.Questions {
			if ids = append(ids, q.ID); answers[q.ID] == "" {
				open = append(open, q.ID)
			}
		}
	}
	for id, who := range answers {
		switch {
		case !slices.Contains(ids, id):
			return nil, nil, fmt.Errorf("%s: %q is no question of lab 0", plain.Path(path), plain.Line(id))
		case who != "" && !slices.Contains(actors, who):
			return nil, nil, fmt.Errorf("%s: %s: %q is none of %s", plain.Path(path), id, plain.Line(who), strings.Join(actors, ", "))
		}
	}
	return answers, open, nil
}

// Run performs the steps. It returns how many answers are right, and how many were judged: without real Pods, one less.
func (quiz Quiz) Run(ctx context.Context, s Stage, answers Answers) (right, judged int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.open(ctx); err != nil {
		return 0, 0, err
	}
	for i, step := range quiz {
		told, err := s.perform(ctx, i+1, step)
		if err != nil {
			return right, judged, fmt.Errorf("step %d of lab 0: %w", i+1, err)
		}
		fmt.Fprintln(s.Out)
		for _, q := range step.Questions {
			seen, answer := q.answer(told), answers[q.ID]
			switch {
			case q.RealPods && !s.Cluster.RealPods:
				s.paragraph("–  ", q.Text+" Not judged: no container runs on this kind of cluster.")
				s.paragraph("   ", fmt.Sprintf("On this cluster %s says that they run. On kind it is the kubelet. %s", seen, q.Why))
				continue
			case answer == seen:
				right++
				s.paragraph("✓  ", fmt.Sprintf("%s %s, as you said.", q.Text, seen))
			default:
				s.paragraph("✗  ", fmt.Sprintf("%s You said %s, and it was %s.", q.Text, answer, seen))
			}
			judged++
			s.paragraph("   ", q.Why)
		}
	}
	return right, judged, nil
}
