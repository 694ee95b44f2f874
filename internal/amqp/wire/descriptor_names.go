package wire

// descriptorByName switches on the bytes because that neither allocates nor needs a
// table to be built.
func descriptorByName(name []byte) (Descriptor, bool) {
	switch string(name) {
	case "amqp:open:list":
		return DescriptorOpen, true
	case "amqp:begin:list":
		return DescriptorBegin, true
	case "amqp:attach:list":
		return DescriptorAttach, true
	case "amqp:flow:list":
		return DescriptorFlow, true
	case "amqp:transfer:list":
		return DescriptorTransfer, true
	case "amqp:disposition:list":
		return DescriptorDisposition, true
	case "amqp:detach:list":
		return DescriptorDetach, true
	case "amqp:end:list":
		return DescriptorEnd, true
	case "amqp:close:list":
		return DescriptorClose, true
	case "amqp:error:list":
		return DescriptorError, true
	case "amqp:received:list":
		return DescriptorReceived, true
	case "amqp:accepted:list":
		return DescriptorAccepted, true
	case "amqp:rejected:list":
		return DescriptorRejected, true
	case "amqp:released:list":
		return DescriptorReleased, true
	case "amqp:modified:list":
		return DescriptorModified, true
	case "amqp:source:list":
		return DescriptorSource, true
	case "amqp:target:list":
		return DescriptorTarget, true
	case "amqp:coordinator:list":
		return DescriptorCoordinator, true
	case "amqp:sasl-mechanisms:list":
		return DescriptorSASLMechanisms, true
	case "amqp:sasl-init:list":
		return DescriptorSASLInit, true
	case "amqp:sasl-challenge:list":
		return DescriptorSASLChallenge, true
	case "amqp:sasl-response:list":
		return DescriptorSASLResponse, true
	case "amqp:sasl-outcome:list":
		return DescriptorSASLOutcome, true
	case "amqp:header:list":
		return DescriptorHeader, true
	case "amqp:delivery-annotations:map":
		return DescriptorDeliveryAnnotations, true
	case "amqp:message-annotations:map":
		return DescriptorMessageAnnotations, true
	case "amqp:properties:list":
		return DescriptorProperties, true
	case "amqp:application-properties:map":
		return DescriptorApplicationProperties, true
	case "amqp:data:binary":
		return DescriptorData, true
	case "amqp:amqp-sequence:list":
		return DescriptorSequence, true
	case "amqp:amqp-value:*":
		return DescriptorValue, true
	case "amqp:footer:map":
		return DescriptorFooter, true
	default:
		return 0, false
	}
}
