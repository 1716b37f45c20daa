// Reads manifests from standard input and says what Kubernetes would refuse of them: names that its types do not have, all that its API server checks of
// a new object, and what the Pod Security Standard "restricted" forbids. It needs no cluster, because it runs the server's own code.
// It prints a fault a line, and exits with 1 if there are any.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
)

func strategyOf(object runtime.Object) (rest.RESTCreateStrategy, error) {
	switch object.(type) {
	case *apps.Deployment:
		return deployment.Strategy, nil
	case *batch.Job:
		return job.Strategy, nil
	case *core.ConfigMap:
		return configmap.Strategy, nil
	case *core.Service:
		return service.Strategy, nil
	case *core.ServiceAccount:
		return serviceaccount.Strategy, nil
	case *networking.Ingress:
		return ingress.Strategy, nil
	case *networking.NetworkPolicy:
		return networkpolicy.Strategy, nil
	case *policy.PodDisruptionBudget:
		return poddisruptionbudget.Strategy, nil
	}
	return nil, fmt.Errorf("no strategy for %T", object)
}

// Custom resources have no rules but their types here: their own servers have the others.
func isCustom(object runtime.Object) bool {
	switch object.(type) {
	case *monitoringv1.ServiceMonitor, *monitoringv1.PrometheusRule, *kedav1alpha1.ScaledObject, *kedav1alpha1.TriggerAuthentication:
		return true
	}
	return false
}

func faultsOf(manifest []byte, decoder runtime.Decoder, pods podsecurity.Evaluator) []error {
	object, kind, err := decoder.Decode(manifest, nil, nil)
	if err != nil {
		return []error{err}
	}
	if isCustom(object) {
		return nil
	}
	where := func(err error) error { return fmt.Errorf("%s: %w", kind.Kind, err) }
	var faults []error
	if template := podsOf(object); template != nil {
		level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		if result := podsecurity.AggregateCheckResults(pods.EvaluatePod(level, &template.ObjectMeta, &template.Spec)); !result.Allowed {
			faults = append(faults, where(errors.New(result.ForbiddenDetail())))
		}
	}
	legacyscheme.Scheme.Default(object)
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		return append(faults, where(err))
	}
	strategy, err := strategyOf(internal)
	if err != nil {
		return append(faults, where(err))
	}
	ctx := request.WithRequestInfo(request.WithNamespace(context.Background(), "muster"), &request.RequestInfo{
		APIGroup: kind.Group, APIVersion: kind.Version,
	})
	accessor, err := meta.Accessor(internal)
	if err != nil {
		return append(faults, where(err))
	}
	rest.FillObjectMetaSystemFields(accessor)
	if err := rest.BeforeCreate(strategy, ctx, internal); err != nil {
		faults = append(faults, where(err))
	}
	return faults
}

func podsOf(object runtime.Object) *corev1.PodTemplateSpec {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return &object.Spec.Template
	case *batchv1.Job:
		return &object.Spec.Template
	}
	return nil
}

func main() {
	scheme := legacyscheme.Scheme
	for _, add := range []func(*runtime.Scheme) error{monitoringv1.AddToScheme, kedav1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	pods, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		panic(err)
	}
	reader := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	count, failed := 0, false
	for {
		manifest, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			panic(err)
		}
		if len(bytes.TrimSpace(manifest)) == 0 || isComment(manifest) {
			continue
		}
		count++
		for _, fault := range faultsOf(manifest, decoder, pods) {
			failed = true
			fmt.Println(fault)
		}
	}
	if failed || count == 0 {
		os.Exit(1)
	}
	fmt.Printf("%d objects\n", count)
}

// Whether there is nothing but comments.
func isComment(manifest []byte) bool {
	for _, line := range bytes.Split(manifest, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}
