package topics

import (
	"cmp"
	"path"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
)

// RenderSubscriptionARM shows a subscription as management calls do: one that is pulled in the
// shape of a namespace's. Nothing secret is in it: of a webhook's URL only what is before the
// query, of dead letters no key and no signature. state and why are ours.
func RenderSubscriptionARM(s Subscription) any {
	properties := object{
		"topic":               s.Resource,
		"provisioningState":   cmp.Or(provisioningStates[s.State], "Failed"),
		"state":               s.State,
		"eventDeliverySchema": s.Output.OutputName(),
		"labels":              orEmpty(s.Labels),
		"expirationTimeUtc":   nil,
	}
	if s.Why != "" {
		properties["why"] = s.Why
	}
	if !s.Expires.IsZero() {
		properties["expirationTimeUtc"] = s.Expires.UTC().Format(time.RFC3339Nano)
	}
	f, ttl, dead := s.Filter, cmp.Or(s.Retry.TimeToLive, retry.DefaultTimeToLive), renderDeadLetter(s)
	if s.Pull != nil {
		queue := object{
			"receiveLockDurationInSeconds": int64(cmp.Or(s.Pull.Lock, time.Minute) / time.Second),
			"maxDeliveryCount":             cmp.Or(s.Pull.MaxDeliveries, defaultDeliveries),
			"eventTimeToLive":              isoDuration(ttl),
		}
		if dead != nil {
			queue["deadLetterDestinationWithResourceIdentity"] = object{"deadLetterDestination": dead}
		}
		properties["deliveryConfiguration"] = object{"deliveryMode": "Queue", "queue": queue}
		properties["filtersConfiguration"] = object{"includedEventTypes": f.EventTypes, "filters": orEmpty(f.Advanced)}
	} else {
		properties["destination"] = renderDestination(s)
		// Members are there also where they are empty, as in Event Grid's reads.
		shown := object{
			"subjectBeginsWith": f.SubjectBeginsWith, "subjectEndsWith": f.SubjectEndsWith,
			"isSubjectCaseSensitive": f.SubjectCaseSensitive, "enableAdvancedFilteringOnArrays": f.Arrays,
			"includedEventTypes": f.EventTypes,
		}
		if len(f.Advanced) > 0 {
			shown["advancedFilters"] = f.Advanced
		}
		properties["filter"] = shown
		properties["retryPolicy"] = object{
			"maxDeliveryAttempts":      cmp.Or(s.Retry.MaxAttempts, retry.DefaultAttempts),
			"eventTimeToLiveInMinutes": wholeMinutes(ttl),
		}
		properties["deadLetterDestination"] = dead
	}
	id := s.Resource + "/eventSubscriptions/" + s.Name
	if s.Source.Hub != "" {
		id = s.Resource + "/providers/Microsoft.EventGrid/eventSubscriptions/" + s.Name
	}
	kind := "Microsoft.EventGrid/eventSubscriptions"
	if s.Pull != nil {
		kind = typeOf(id)
	}
	return object{"id": id, "name": s.Name, "type": kind, "properties": properties}
}

// provisioningStates: only who gets events has succeeded. All other states have failed.
var provisioningStates = map[State]string{Active: "Succeeded", Paused: "Succeeded", Pending: "AwaitingManualAction"}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func renderDestination(s Subscription) object {
	properties := object{"deliveryAttributeMappings": renderHeaders(s.Headers)}
	// Event Grid's defaults, but where only the size is set: that would turn batching off.
	if s.MaxEvents > 0 || s.PreferredKiB == 0 {
		properties["maxEventsPerBatch"] = cmp.Or(s.MaxEvents, defaultMaxEvents)
	}
	properties["preferredBatchSizeInKilobytes"] = cmp.Or(s.PreferredKiB, defaultPreferredKiB)
	if s.Hub != "" {
		properties["eventHub"], properties["resourceId"] = s.Hub, hubResource(s, s.Hub, s.HubResource)
		return object{"endpointType": "EventHub", "properties": properties}
	}
	if s.Webhook != nil {
		properties["endpointBaseUrl"] = baseURL(s.Webhook.URL)
		properties["minimumTlsVersionAllowed"] = cmp.Or(s.Webhook.MinTLS, "1.2")
	}
	return object{"endpointType": "WebHook", "properties": properties}
}

// hubResource is a hub's id as it was given or, where it was not, one in the group that the source
// is in.
func hubResource(s Subscription, hub, given string) string {
	if given != "" && hubName("", given) == hub {
		return given
	}
	group, _, _ := strings.Cut(s.Resource, "/providers/")
	return MoveResource(HubResource(path.Base(group), hub), group, "")
}

func renderHeaders(headers []Header) []object {
	list := make([]object, 0, len(headers))
	for _, h := range headers {
		if h.Field != "" {
			list = append(list, object{"name": h.Name, "type": "Dynamic", "properties": object{"sourceField": h.Field}})
			continue
		}
		value := h.Value
		if h.Secret {
			value = hidden
		}
		list = append(list, object{"name": h.Name, "type": "Static", "properties": object{"value": value, "isSecret": h.Secret}})
	}
	return list
}

// renderDeadLetter gives nil where dead letters are dropped.
func renderDeadLetter(s Subscription) any {
	d := s.DeadLetter
	switch d.Kind {
	case TargetYard:
		return object{"endpointType": "Yard", "properties": object{}}
	case TargetFolder:
		return object{"endpointType": "Folder", "properties": object{"path": d.Where}}
	case TargetHub:
		return object{"endpointType": "EventHub", "properties": object{"eventHub": d.Where, "resourceId": hubResource(s, d.Where, d.Resource)}}
	case TargetBlob:
		container := baseURL(d.Where)
		shown := object{"blobContainerName": path.Base(container)}
		if account, _, ok := d.Account(); ok {
			group, _, _ := strings.Cut(s.Resource, "/providers/")
			shown["resourceId"] = group + "/providers/Microsoft.Storage/storageAccounts/" + account
		} else {
			shown["blobContainerUrl"] = container
		}
		if d.Resource != "" {
			shown["resourceId"] = d.Resource
		}
		return object{"endpointType": "StorageBlob", "properties": shown}
	}
	return nil
}
