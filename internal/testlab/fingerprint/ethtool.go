package fingerprint

import (
	"encoding/hex"
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What ioctl(SIOCETHTOOL) is asked for (linux/ethtool.h), and how many blocks of 32 features there is room for.
const (
	getFeatures   = 0x3a // ETHTOOL_GFEATURES
	featureBlocks = 4
)

// features is the state of an interface's features as the kernel has it: of each block, those available, requested,
// active and never changed.
func features(name string) (string, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(socket) //nolint:errcheck // nothing was written
	ask := struct {
		command, size uint32
		blocks        [featureBlocks * 16]byte
	}{command: getFeatures, size: featureBlocks}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // struct ifreq is longer
	}{data: unsafe.Pointer(&ask)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errors.Is(errno, unix.EOPNOTSUPP) {
		return "features=none", nil
	}
	if errno != 0 {
		return "", errno
	}
	return "features=" + hex.EncodeToString(ask.blocks[:]), nil
}
