package azblob

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// APIVersion makes a client speak a version of the storage service's API. It belongs into
// ClientOptions.PerCallPolicies: those run before the request is signed.
func APIVersion(version string) policy.Policy { return apiVersion(version) }

type apiVersion string

func (v apiVersion) Do(r *policy.Request) (*http.Response, error) {
	// The client library sets the header in this very spelling; another would make two.
	r.Raw().Header["x-ms-version"] = []string{string(v)}
	return r.Next()
}
