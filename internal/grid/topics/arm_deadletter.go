package topics

import (
	"net/url"
	"path"
	"strings"
)

// armDeadLetter is where dead letters go. All but StorageBlob with resourceId and blobContainerName
// is ours.
type armDeadLetter struct {
	EndpointType string `json:"endpointType"`
	Properties   struct {
		ResourceID    string `json:"resourceId"`
		ContainerName string `json:"blobContainerName"`
		ContainerURL  string `json:"blobContainerUrl"`
		AccountKey    string `json:"accountKey"`
		Path          string `json:"path"`
		EventHub      string `json:"eventHub"`
	} `json:"properties"`
}

// parseDeadLetter replaces the target; null is none.
func parseDeadLetter(d *armDeadLetter, s *Settings) (err error) {
	if d == nil {
		s.DeadLetter = Target{}
		return nil
	}
	s.DeadLetter, err = d.target(s.DeadLetter)
	return err
}

// armIdentityDeadLetter has a target with an Azure identity, which has no meaning here.
type armIdentityDeadLetter struct {
	DeadLetterDestination *armDeadLetter `json:"deadLetterDestination"`
}

// parseIdentityDeadLetter takes null as nothing said: reads have it beside a plain one.
func parseIdentityDeadLetter(d armIdentityDeadLetter, s *Settings) error {
	if d.DeadLetterDestination == nil {
		return nil
	}
	return parseDeadLetter(d.DeadLetterDestination, s)
}

func (d *armDeadLetter) target(present Target) (Target, error) {
	p := d.Properties
	var target Target
	switch {
	case strings.EqualFold(d.EndpointType, "StorageBlob"):
		return d.container(present)
	case strings.EqualFold(d.EndpointType, "Yard"):
		target = Target{Kind: TargetYard}
	case strings.EqualFold(d.EndpointType, "Folder"):
		target = Target{Kind: TargetFolder, Where: p.Path}
	case strings.EqualFold(d.EndpointType, "EventHub"):
		target = Target{Kind: TargetHub, Where: hubName(p.EventHub, p.ResourceID), Resource: givenHub(p.EventHub, p.ResourceID, present.Resource)}
	default:
		return Target{}, invalid("deadLetterDestination: endpointType %.40q: write StorageBlob, Folder, EventHub or Yard", d.EndpointType)
	}
	return target, target.check()
}

// container finds the URL of a blob container. One that is the present one but for what reads
// hide is the present one.
func (d *armDeadLetter) container(present Target) (Target, error) {
	p := d.Properties
	where := p.ContainerURL
	if where == "" {
		account := p.ResourceID
		if !isURL(account) {
			name := account[strings.LastIndexByte(account, '/')+1:]
			if name == "" {
				return Target{}, invalid("deadLetterDestination: give blobContainerUrl, or a storage account's resourceId and blobContainerName")
			}
			account = "https://" + name + ".blob.core.windows.net"
		}
		u, err := url.Parse(account)
		if err != nil || p.ContainerName == "" || strings.ContainsAny(p.ContainerName, "/?#") {
			return Target{}, invalid("deadLetterDestination: give the account's resourceId and the container's blobContainerName, or the whole as blobContainerUrl")
		}
		where = u.JoinPath(p.ContainerName).String()
	}
	target := Target{Kind: TargetBlob, Where: where, Key: p.AccountKey}
	if !isURL(p.ResourceID) {
		target.Resource = p.ResourceID
	}
	if err := target.check(); err != nil {
		return Target{}, err
	}
	if present.Kind == TargetBlob && where == baseURL(present.Where) && target.Key == "" {
		return present, nil
	}
	if target.Key == "" && p.ContainerURL == "" && target.Resource != "" { // no identity opens it: the yard has to know it
		target.Where = path.Base(target.Resource) + "/" + p.ContainerName
		if _, _, ok := target.Account(); !ok {
			return Target{}, invalid("deadLetterDestination: %.80q are no names of a storage account and a container", target.Where)
		}
	}
	return target, nil
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}
