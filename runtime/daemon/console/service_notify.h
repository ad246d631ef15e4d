// Words to the service manager that started this process, as systemd's sd_notify(3) specifies them: a datagram to the
// socket that NOTIFY_SOCKET names. Where there is none, nothing happens.
//
// Thread: any. Cost: a system call; never blocks.
#pragma once

#include <string>

namespace rumor::daemon {

// Sends lines such as "READY=1", "STATUS=training", "STOPPING=1". Returns false if there is a socket that refused them.
bool notify_service(const std::string& lines);

}  // namespace rumor::daemon
