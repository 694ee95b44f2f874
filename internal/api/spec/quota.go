package spec

import (
	"fmt"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/quota"
)

// maxQuotaBytes is far above what any machine stores in a second.
const maxQuotaBytes = 1 << 40

// The rows of a quota, wherever there is one.
var (
	quotaEvents = Field{Name: "quota.events", Value: "number", Help: "events a second that may be published; 0: no limit", Max: 1_000_000_000, Default: "0"}
	quotaBytes  = Field{Name: "quota.bytes", Value: "size", Help: "bytes a second that may be published, like 1MiB; 0: no limit", Max: maxQuotaBytes, Default: "0", set: setQuotaBytes}
)

func setQuotaBytes(definition any, text string) error {
	bytes, err := quantity.ParseSize(text)
	if err == nil {
		quotaOf(definition).Bytes = &bytes
	}
	return err
}

// quotaOf gives the quota of a request, which is made if it has none.
func quotaOf(definition any) *admin.QuotaRequest {
	var at **admin.QuotaRequest
	switch request := definition.(type) {
	case *admin.HubRequest:
		at = &request.Quota
	case *admin.TopicRequest:
		at = &request.Quota
	case *admin.PolicyRequest:
		at = &request.Quota
	default:
		panic(fmt.Sprintf("a %T has no quota", definition))
	}
	if *at == nil {
		*at = new(admin.QuotaRequest)
	}
	return *at
}

// CheckQuota judges the quota of a request by the rows; nil is good.
func CheckQuota(r *admin.QuotaRequest) error {
	return Hub.CheckFirst(&admin.HubRequest{Quota: r})
}

// QuotaParts gives the parts of a quota that a request sets, nil for those that it does not.
func QuotaParts(r *admin.QuotaRequest) (events, bytes *int64) {
	if r == nil {
		return nil, nil
	}
	if r.Events != nil {
		events = new(int64(*r.Events))
	}
	return events, r.Bytes
}

// ApplyQuota writes a request over a limit; nil changes nothing.
func ApplyQuota(r *admin.QuotaRequest, l *quota.Limit) {
	events, bytes := QuotaParts(r)
	if events != nil {
		l.Events = *events
	}
	if bytes != nil {
		l.Bytes = *bytes
	}
}

// ShowQuota is a limit as the API shows it.
func ShowQuota(l quota.Limit) admin.Quota { return admin.Quota{Events: int(l.Events), Bytes: l.Bytes} }
