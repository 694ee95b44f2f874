package azureblob

import (
	"encoding/xml"
	"net/http"
)

func (c *call) createContainer() error {
	if access := c.R.Header.Get("x-ms-blob-public-access"); access != "" {
		return refusal(http.StatusConflict, "PublicAccessNotPermitted", "nothing is public in this yard: leave out x-ms-blob-public-access")
	}
	if c.at.Container == Account || c.at.Container == DevelopmentAccount {
		return refusal(http.StatusBadRequest, "InvalidResourceName", "this is the name of an account, which no container may have here")
	}
	metadata, err := c.metadata()
	if err != nil {
		return err
	}
	container, err := c.handler.blobs.CreateContainer(c.R.Context(), c.at, metadata)
	if err != nil {
		return err
	}
	c.sendVersion(container.ETag, container.Modified)
	return c.reply(http.StatusCreated)
}

func (c *call) containerProperties() error {
	when, err := c.conditions()
	if err != nil {
		return err
	}
	container, err := c.handler.blobs.Container(c.R.Context(), c.at, when)
	if err != nil {
		return err
	}
	h := c.Header()
	c.sendVersion(container.ETag, container.Modified)
	c.sendMetadata(container.Metadata)
	c.sendLease(container.Lease)
	h.Set("x-ms-has-immutability-policy", "false")
	h.Set("x-ms-has-legal-hold", "false")
	return c.reply(http.StatusOK)
}

func (c *call) setContainerMetadata() error {
	content, when, err := c.writing(false)
	if err != nil {
		return err
	}
	container, err := c.handler.blobs.SetContainerMetadata(c.R.Context(), c.at, content.Metadata, when)
	if err != nil {
		return err
	}
	c.sendVersion(container.ETag, container.Modified)
	return c.reply(http.StatusOK)
}

func (c *call) deleteContainer() error {
	when, err := c.conditions()
	if err != nil {
		return err
	}
	if err := c.handler.blobs.DeleteContainer(c.R.Context(), c.at, when); err != nil {
		return err
	}
	return c.reply(http.StatusAccepted)
}

// containerACL shows that a container has no stored policies and is not public.
func (c *call) containerACL() error {
	when, err := c.conditions()
	if err != nil {
		return err
	}
	container, err := c.handler.blobs.Container(c.R.Context(), c.at, when)
	if err != nil {
		return err
	}
	c.sendVersion(container.ETag, container.Modified)
	return c.replyXML(http.StatusOK, struct {
		XMLName xml.Name `xml:"SignedIdentifiers"`
	}{})
}

// accountInformation tells what kind of account this would be in Azure.
func (c *call) accountInformation() error {
	h := c.Header()
	h.Set("x-ms-sku-name", "Standard_LRS")
	h.Set("x-ms-account-kind", "StorageV2")
	h.Set("x-ms-is-hns-enabled", "false")
	return c.reply(http.StatusOK)
}

// switched is a feature of the service that is off.
type switched struct {
	Version string `xml:",omitempty"`
	Enabled bool
}

type loggingDocument struct {
	Version             string
	Delete, Read, Write bool
	RetentionPolicy     switched
}

type serviceDocument struct {
	XMLName                    xml.Name `xml:"StorageServiceProperties"`
	Logging                    loggingDocument
	HourMetrics, MinuteMetrics struct {
		Version         string
		Enabled         bool
		RetentionPolicy switched
	}
	Cors                  struct{}
	DefaultServiceVersion string
	DeleteRetentionPolicy switched
	StaticWebsite         switched
}

// serviceProperties shows a service with everything off.
func (c *call) serviceProperties() error {
	document := serviceDocument{DefaultServiceVersion: defaultVersion}
	document.Logging.Version, document.HourMetrics.Version, document.MinuteMetrics.Version = "1.0", "1.0", "1.0"
	return c.replyXML(http.StatusOK, document)
}
