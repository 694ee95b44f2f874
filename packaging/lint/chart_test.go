// Package lint judges what cannot be run everywhere: the Helm chart by Helm's own linter and engine and by
// the types of Kubernetes, its settings by the yard itself, alerts by what Prometheus reads rules with, and queries of
// the dashboard by its parser.
package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartlint "helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

const chartFolder = "../helm/eventyard"

// modes are the ways to run a yard that the chart knows, with what each needs.
var modes = map[string]struct {
	values map[string]any
	nodes  int32
	secret string // settings that pods are given as variables, from a Secret
}{
	"single": {values: map[string]any{}, nodes: 1},
	"single with everything": {values: map[string]any{
		"host": "yard.example.com", "tlsSecret": "yard-tls", "imagePullSecrets": []any{map[string]any{"name": "registry"}},
		"config":         map[string]any{"hubs": []any{map[string]any{"name": "orders", "partitions": 4}}},
		"env":            []any{map[string]any{"name": "EVENTYARD_LOG_LEVEL", "value": "debug"}},
		"persistence":    map[string]any{"storageClass": "fast", "size": "1Ti"},
		"nodeSelector":   map[string]any{"disk": "ssd"},
		"tolerations":    []any{map[string]any{"key": "x", "operator": "Exists"}},
		"podAnnotations": map[string]any{"a": "b"},
		"service":        map[string]any{"type": "LoadBalancer", "annotations": map[string]any{"c": "d"}},
	}, nodes: 1},
	"peers":      {values: map[string]any{"mode": "peers", "peers": map[string]any{"bundlesSecret": "yard-bundles"}}, nodes: 3},
	"five peers": {values: map[string]any{"mode": "peers", "peers": map[string]any{"bundlesSecret": "yard-bundles", "count": 5}}, nodes: 5},
	"nats": {
		values: map[string]any{"mode": "nats", "nats": map[string]any{"secret": "yard-nats", "nodes": 2}}, nodes: 2,
		secret: "engine: nats://USER:PASSWORD@nats-0,nats-1,nats-2\nnode: yard-0\nsecrets: {key: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}\n",
	},
}

// V7: the chart passes Helm's linter, what it renders is what Kubernetes takes, field by field, and the settings
// in it are what a yard takes.
func TestChart(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			for _, m := range chartlint.RunAll(chartFolder, mode.values, "default").Messages {
				if m.Severity > support.InfoSev {
					t.Error(m)
				}
			}
			kinds := map[string]int{}
			for _, object := range decode(t, render(t, mode.values)) {
				kinds[object.GetObjectKind().GroupVersionKind().Kind]++
				switch object := object.(type) {
				case *appsv1.StatefulSet:
					checkNodes(t, object, mode.nodes)
				case *corev1.ConfigMap:
					checkSettings(t, mode.secret+object.Data["eventyard.yaml"])
				}
			}
			want := map[string]int{"ConfigMap": 1, "Service": 2, "StatefulSet": 1}
			if mode.nodes > 1 {
				want["PodDisruptionBudget"] = 1
			}
			if !maps.Equal(kinds, want) {
				t.Errorf("it renders %v, want %v", kinds, want)
			}
		})
	}
}

func checkNodes(t *testing.T, set *appsv1.StatefulSet, nodes int32) {
	t.Helper()
	if *set.Spec.Replicas != nodes {
		t.Errorf("there are %d nodes, want %d", *set.Spec.Replicas, nodes)
	}
	pod := set.Spec.Template.Spec
	volumes := []string{}
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, v := range set.Spec.VolumeClaimTemplates {
		volumes = append(volumes, v.Name)
	}
	yard := pod.Containers[0]
	for _, m := range yard.VolumeMounts {
		if !slices.Contains(volumes, m.Name) {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
	if security := yard.SecurityContext; !*security.ReadOnlyRootFilesystem || *security.AllowPrivilegeEscalation || !*pod.SecurityContext.RunAsNonRoot {
		t.Error("the pod may do more than it has to")
	}
}

// Kafka clients in the cluster are led to each of several nodes by a name of its own; where the yard has a host for
// others, or a certificate that need not have those names, to all by one.
func TestWhereTheChartLeadsKafkaClients(t *testing.T) {
	peers := map[string]any{"mode": "peers", "peers": map[string]any{"bundlesSecret": "yard-bundles"}}
	with := func(key, value string) map[string]any {
		values := maps.Clone(peers)
		values[key] = value
		return values
	}
	for name, test := range map[string]struct {
		values map[string]any
		want   string
	}{
		"one node":           {map[string]any{}, ""},
		"several":            {peers, "$(POD_NAME).yard-eventyard-nodes.events.svc:9093"},
		"with a host":        {with("host", "yard.example.com"), ""},
		"with a certificate": {with("tlsSecret", "yard-tls"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := "", false
			for _, object := range decode(t, render(t, test.values)) {
				set, ok := object.(*appsv1.StatefulSet)
				if !ok {
					continue
				}
				for _, v := range set.Spec.Template.Spec.Containers[0].Env {
					if v.Name == "EVENTYARD_KAFKAS_ADVERTISE" {
						got = v.Value
					}
					known = known || v.Name == "POD_NAME" && got == "" // it is made of that, which has to stand before it
				}
			}
			if got != test.want || !known {
				t.Errorf("clients are led to %q, want %q", got, test.want)
			}
		})
	}
}

// V7: what Helm says once the chart is installed fits the mode, and names pods, services and labels that there are.
func TestWhatTheChartSaysOnceInstalled(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			files, err := rendered(mode.values)
			if err != nil {
				t.Fatal(err)
			}
			notes := files["eventyard/templates/NOTES.txt"]
			kind, wants := "single", []string{fmt.Sprintf("A yard of %d node(s), mode ", mode.nodes)}
			if chosen, ok := mode.values["mode"]; ok {
				kind = chosen.(string)
			}
			wants[0] += kind + ".\n"
			for _, object := range decode(t, render(t, mode.values)) {
				set, isSet := object.(*appsv1.StatefulSet)
				service, isService := object.(*corev1.Service)
				switch {
				case isSet && kind == "single":
					wants = append(wants, "kubectl -n events exec "+set.Name+"-0 -- eventyard hub create orders\n")
				case isSet:
					wants = append(wants, "-l app.kubernetes.io/instance="+set.Spec.Template.Labels["app.kubernetes.io/instance"]+" ")
				case isService && kind != "single" && service.Spec.ClusterIP != corev1.ClusterIPNone:
					wants = append(wants, "port-forward service/"+service.Name+" 8443\n")
				}
			}
			for _, want := range wants {
				if !strings.Contains(notes+"\n", want) {
					t.Errorf("%q is missing in\n%s", want, notes)
				}
			}
			if strings.Contains(notes, "<no value>") || kind != "single" && len(wants) != 3 || kind == "single" && len(wants) != 2 {
				t.Errorf("looked for %q in\n%s", wants, notes)
			}
		})
	}
}

// What is missing is said, with the command that makes it.
func TestChartSaysWhatIsMissing(t *testing.T) {
	for mode, wants := range map[string]string{
		"peers": "eventyard cluster init --peers yard-eventyard-0=yard-eventyard-0.yard-eventyard-nodes.events.svc:6222,yard-eventyard-1=",
		"nats":  "create secret generic yard-nats",
		"many":  "mode",
	} {
		_, err := rendered(map[string]any{"mode": mode})
		if err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("mode %s: %v, want %s", mode, err, wants)
		}
	}
}

func rendered(values map[string]any) (map[string]string, error) {
	chart, err := loader.Load(chartFolder)
	if err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: "yard", Namespace: "events", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(chart, all)
}

// render gives the objects that the chart makes, as texts.
func render(t *testing.T, values map[string]any) (objects []string) {
	t.Helper()
	files, err := rendered(values)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, object := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
			if strings.TrimSpace(object) != "" {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

// decode reads objects as Kubernetes would that takes no unknown field.
func decode(t *testing.T, texts []string) (objects []runtime.Object) {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, text := range texts {
		object, _, err := decoder.Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		objects = append(objects, object)
	}
	return objects
}
